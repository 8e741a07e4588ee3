/* SPDX-License-Identifier: MIT
 * The credential of a request, and what it allows. */
#ifndef REST_CORE_ACCESS_H
#define REST_CORE_ACCESS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"
#include "rest/core/request.h"
#include "rest/core/request_url.h"
#include "rest/tokens/oauth.h"
#include "service/core/accounts.h"
#include "service/core/service.h"
#include "service/sas/sas.h"

#include <stdint.h>

struct rest_service;

enum access_kind {
	ACCESS_OWNER,       /* an account key signed it, or the peer is trusted */
	ACCESS_ACCOUNT_SAS, /* protocol section 4.6 */
	ACCESS_SERVICE_SAS, /* protocol section 4.5 */
	ACCESS_TOKEN,       /* a bearer token */
};

/* A set of letters, one bit each: PERMISSION('r'). */
#define PERMISSION(letter_) (UINT32_C(1) << ((letter_) - 'a'))

struct access {
	enum access_kind kind;
	enum credential_kind credential;
	/* SAS: sp, or that of its stored policy; token: what it allows for objects */
	uint32_t permissions;
	uint32_t services;       /* account SAS: ss */
	uint32_t resource_types; /* account SAS: srt */
	int version;             /* SAS: sv as 20190202; else 0 */
	struct sas sas;          /* SAS: its fields, borrowed from the URL */
	/* service SAS: the table or queue that it is for; borrowed from the URL */
	struct span container;
	struct bearer bearer; /* token */
};

/* The permissions that an operation requires of a SAS.  Each route (rest/core/route.h) has one. */
struct access_need {
	uint32_t account_types; /* account SAS: any of these srt letters; 0: not allowed */
	uint32_t account_any;   /* account SAS: any of these sp letters, and */
	uint32_t account_all;   /* all of these */
	uint32_t service_all;   /* service SAS: all of these sp letters, and */
	uint32_t service_any;   /* any of these; both 0: not allowed */
	bool delegates; /* a token whose roles give user delegation keys, and nothing else */
};

/* The input of the check. */
struct access_facts {
	const struct rest_service *rest;
	struct service *service;
	const struct request *request;
	const struct request_url *url;      /* with the parameters of a SAS */
	struct span container;              /* the table, queue or container that the URL names */
	const struct account_secrets *keys; /* of the URL's account */
	int64_t now;                        /* ticks */
	struct span blob;                   /* "container/blob", where the URL names one */
};

/* Checks the validity of a credential, whatever the operation: its signature, time, address,
 * protocol and stored policy.  The credential is an Authorization header (SharedKey,
 * SharedKeyLite, Bearer), the parameters of a SAS, or a trusted peer.
 *
 * ERR_AUTH_NONE without a credential; ERR_AUTH_BEARER,
 * ERR_AUTH_FAILED, ERR_AUTH_HEADER, ERR_SAS_IP, ERR_SAS_PROTOCOL; errors of the store.  detail says
 * what is wrong and contains neither keys nor the correct signature. */
enum err access_check(const struct access_facts *f, struct access *ret, struct err_detail *detail);

/* Returns ERR_OK if the credential allows an operation of the service on this table or queue, ""
 * for none.
 * ERR_NOT_PERMITTED, ERR_SAS_SERVICE, ERR_SAS_RESOURCE_TYPE, ERR_SAS_PERMISSION.  Before version
 * 2015-04-05 a missing permission is ERR_NOT_FOUND. */
enum err access_allows(const struct rest_service *rest, const struct access *a,
	const struct access_need *need, struct span container, struct err_detail *detail);
#endif
