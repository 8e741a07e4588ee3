/* SPDX-License-Identifier: MIT
 * Bearer tokens (protocol section 4.8).  A token is as good as a password, so it must come over
 * TLS, or over a Unix socket, which no other machine can read. */
#include "base/clock.h"
#include "rest/core/auth.h"
#include "rest/core/rest_service.h"
#include "rest/rest.h"

enum err auth_bearer(const struct access_facts *f, struct span token, struct access *ret,
	struct err_detail *detail)
{
	const struct request *q = f->request;
	const struct oauth_facts facts = { .service = f->rest->name,
		.letter = f->rest->letter,
		.account = f->url->account,
		.tenant = q->tenant != NULL ? q->tenant : REST_TENANT_DEFAULT,
		.now = (f->now - TICKS_UNIX_EPOCH) / TICKS_PER_SECOND };
	if (q->oauth == NULL)
		return err_set(detail, ERR_AUTH_BEARER,
			"Bearer tokens are not accepted here; use an account key or a shared "
			"access signature, or start the server with oauth=.");
	if (!q->peer->tls && !q->peer->is_unix)
		return err_set(detail, ERR_AUTH_FAILED,
			"Authentication scheme Bearer is not allowed with HTTP.");
	enum err e = oauth_check(q->oauth, token, &facts, &ret->bearer, detail);
	if (e != ERR_OK)
		return e;
	ret->kind = ACCESS_TOKEN;
	ret->permissions = ret->bearer.grants.objects;
	return ERR_OK;
}
