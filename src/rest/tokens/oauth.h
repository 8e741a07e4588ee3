/* SPDX-License-Identifier: MIT
 * Which bearer tokens a server accepts, and the check of one. */
#ifndef REST_TOKENS_OAUTH_H
#define REST_TOKENS_OAUTH_H

#include "base/err.h"
#include "base/span.h"
#include "rest/tokens/roles.h"

#include <stdint.h>

#define OAUTH_NAME_MAX 64   /* bytes of an object id and of a tenant id */
#define OAUTH_SKEW_S 300    /* how far the clocks of two machines may differ, with keys */
#define OAUTH_ROLES_MAX 256 /* of a token */

struct oauth;

/* Checks the form of the option: "basic" or "jwks:FILE".  Returns the name of the file, NULL for
 * basic. ERR_INVALID_INPUT for other text. */
enum err oauth_parse(const char *how, const char **ret_file);

/* Makes the judge of tokens.  basic: it checks the claims only, as the emulator does, and a token
 * gives every right. jwks: the file has the keys that sign tokens, and the claim `roles` gives
 * rights.  The file is read now, and again before a check when it has changed; a version that
 * cannot be used is logged, and the keys stay as they were. ERR_INVALID_INPUT with the reason;
 * ERR_NO_MEMORY; an error of reading the file.  The caller closes *ret. */
enum err oauth_open(const char *how, struct oauth **ret, struct err_detail *detail);
/* NULL is allowed.  No check may be running. */
void oauth_close(struct oauth *o);

/* The service and account that a token must be for, and the time. */
struct oauth_facts {
	const char *service; /* "table", "queue", "blob" */
	char letter;         /* its letter */
	const char *account;
	const char *tenant; /* takes the place of {tenantid} in an issuer of the file */
	int64_t now;        /* seconds since 1970 */
};

/* A token names its holder and grants roles. */
struct bearer {
	struct grants grants; /* in the service and account of the facts; roles is 0 for none */
	/* The claims oid, or else sub, and tid; "" if it is absent, has more than OAUTH_NAME_MAX
	 * bytes, or other characters than letters, digits and hyphens. */
	char object[OAUTH_NAME_MAX + 1], tenant[OAUTH_NAME_MAX + 1];
};

/* Checks a token.  ERR_AUTH_BEARER with the reason in the service's words; ERR_NO_MEMORY.  Several
 * threads may call it.  Waits for the disk only when the file of keys has changed. */
enum err oauth_check(struct oauth *o, struct span token, const struct oauth_facts *facts,
	struct bearer *ret, struct err_detail *detail);

#endif
