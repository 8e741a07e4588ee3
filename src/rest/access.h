/* SPDX-License-Identifier: MIT
 * What the credential of a request allows. */
#ifndef REST_ACCESS_H
#define REST_ACCESS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"
#include "query/key_ranges.h"
#include "rest/request.h"
#include "rest/request_url.h"
#include "service/core/accounts.h"
#include "service/core/service.h"

#include <stdint.h>

enum access_kind {
	ACCESS_OWNER,       /* signed with an account key, or a trusted Unix peer */
	ACCESS_ACCOUNT_SAS, /* protocol section 4.6 */
	ACCESS_TABLE_SAS,   /* protocol section 4.5 */
};

/* Letters as bits: PERMISSION('r') */
#define PERMISSION(letter_) (UINT32_C(1) << ((letter_) - 'a'))

struct access {
	enum access_kind kind;
	uint32_t permissions;    /* the SAS's sp, or its policy's */
	uint32_t services;       /* account SAS: ss */
	uint32_t resource_types; /* account SAS: srt */
	int version;             /* SAS: sv as 20190202; else 0 */
	char table[64];          /* table SAS: tn in lower case */
	bool has_limit;
	struct key_ranges limit; /* table SAS with spk .. erk; access_fini() */
};

/* What an operation needs; a row of the route table (rest/route.h) has one. */
struct access_need {
	uint32_t account_types; /* account SAS: any one of these srt letters; 0: never */
	uint32_t account_any;   /* account SAS: one of these sp letters ... */
	uint32_t account_all;   /* ... and all of these */
	uint32_t table_all;     /* table SAS: all of these sp letters; 0: never */
};

struct access_facts {
	struct service *service;
	const struct request *request;
	const struct request_url *url;      /* account, table, query parameters */
	const struct account_secrets *keys; /* of the target's account */
	int64_t now;                        /* ticks */
};

/* Checks the credential: Authorization header (SharedKey, SharedKeyLite), SAS parameters, or
 * a trusted peer.  Everything about its validity (signature, time, address, protocol, the
 * stored policy) is decided here, nothing about the operation.  access_fini() if ERR_OK.
 * ERR_AUTH_BEARER, ERR_AUTH_NONE (no credential), ERR_AUTH_FAILED, ERR_AUTH_HEADER, ERR_SAS_IP, ERR_SAS_PROTOCOL ...; detail says which
 * part was wrong, and never holds a key or the right signature. */
enum err access_check(const struct access_facts *f, struct access *ret, struct err_detail *detail);
void access_fini(struct access *a);

/* Whether the credential allows an operation on this table ("" where the operation is on
 * none).  ERR_NOT_PERMITTED, ERR_SAS_SERVICE, ERR_SAS_RESOURCE_TYPE, ERR_SAS_PERMISSION;
 * before 2015-04-05 a SAS's missing permission is ERR_NOT_FOUND. */
enum err access_allows(const struct access *a, const struct access_need *need, struct span table,
	struct err_detail *detail);
/* Whether it may touch this row (UTF-8 keys): ERR_NOT_PERMITTED outside the ranges. */
enum err access_allows_row(const struct access *a, struct span pk, struct span rk);

#endif
