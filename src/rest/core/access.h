/* SPDX-License-Identifier: MIT
 * The credential of a request, and what it allows. */
#ifndef REST_CORE_ACCESS_H
#define REST_CORE_ACCESS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"
#include "query/key_ranges.h"
#include "rest/core/request.h"
#include "rest/core/request_url.h"
#include "service/core/accounts.h"
#include "service/core/service.h"

#include <stdint.h>

enum access_kind {
	ACCESS_OWNER,       /* an account key signed it, or the peer is trusted */
	ACCESS_ACCOUNT_SAS, /* protocol section 4.6 */
	ACCESS_TABLE_SAS,   /* protocol section 4.5 */
};

/* A set of letters, one bit each: PERMISSION('r'). */
#define PERMISSION(letter_) (UINT32_C(1) << ((letter_) - 'a'))

struct access {
	enum access_kind kind;
	uint32_t permissions;    /* SAS: sp, or that of its stored policy */
	uint32_t services;       /* account SAS: ss */
	uint32_t resource_types; /* account SAS: srt */
	int version;             /* SAS: sv as 20190202; else 0 */
	char table[64];          /* table SAS: tn in lower case */
	bool has_limit;
	struct key_ranges limit; /* table SAS with spk .. erk; access_fini() frees it */
};

/* The permissions that an operation requires of a SAS.  Each route (rest/core/route.h) has one. */
struct access_need {
	uint32_t account_types; /* account SAS: any of these srt letters; 0: not allowed */
	uint32_t account_any;   /* account SAS: any of these sp letters, and */
	uint32_t account_all;   /* all of these */
	uint32_t table_all;     /* table SAS: all of these sp letters; 0: not allowed */
};

/* The input of the check. */
struct access_facts {
	struct service *service;
	const struct request *request;
	const struct request_url *url;      /* with the parameters of a SAS */
	const struct account_secrets *keys; /* of the URL's account */
	int64_t now;                        /* ticks */
};

/* Checks the validity of a credential, whatever the operation: its signature, time, address,
 * protocol and stored policy.  The credential is an Authorization header (SharedKey,
 * SharedKeyLite), the parameters of a SAS, or a trusted peer.
 *
 * On ERR_OK call access_fini().  ERR_AUTH_NONE without a credential; ERR_AUTH_BEARER,
 * ERR_AUTH_FAILED, ERR_AUTH_HEADER, ERR_SAS_IP, ERR_SAS_PROTOCOL; errors of the store.  detail says
 * what is wrong and contains neither keys nor the correct signature. */
enum err access_check(const struct access_facts *f, struct access *ret, struct err_detail *detail);
/* Frees what access_check() allocated. */
void access_fini(struct access *a);

/* Returns ERR_OK if the credential allows an operation on this table, "" for none.
 * ERR_NOT_PERMITTED, ERR_SAS_SERVICE, ERR_SAS_RESOURCE_TYPE, ERR_SAS_PERMISSION.  Before version
 * 2015-04-05 a missing permission is ERR_NOT_FOUND. */
enum err access_allows(const struct access *a, const struct access_need *need, struct span table,
	struct err_detail *detail);
/* Returns ERR_OK if the credential allows access to this row, given by UTF-8 keys.
 * ERR_NOT_PERMITTED outside of the SAS's ranges. */
enum err access_allows_row(const struct access *a, struct span pk, struct span rk);

#endif
