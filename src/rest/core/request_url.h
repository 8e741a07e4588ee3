/* SPDX-License-Identifier: MIT
 * A parsed request target with its account, in all layouts: path style, host style, -secondary,
 * absolute form, and the doubled account of old clients (protocol section 1.1). */
#ifndef REST_CORE_REQUEST_URL_H
#define REST_CORE_REQUEST_URL_H

#include "base/arena.h"
#include "base/err.h"
#include "codec/uri.h"
#include "model/limits.h"
#include "rest/core/request.h"

#include <stdbool.h>

struct request_url {
	struct span path;  /* as sent, without host and query; the signature covers it */
	struct span query; /* as sent, without '?' */
	struct query_params params;
	char account[LIMIT_ACCOUNT_NAME_MAX + 1];
	bool path_style; /* the account is the first segment of the path */
	bool host_style; /* the account is the first label of the host */
	bool secondary;
	struct span resource;      /* the path behind the account, still percent-encoded */
	struct span host;          /* with its port */
	struct span base;          /* "http://host[:port]/" or "http://host:port/account/" */
	struct span comp, restype; /* parameters; p is NULL if absent */
};

/* Returns true if the account exists. */
typedef bool (*account_exists_fn)(void *arg, struct span name);

/* Parses the target of a request.  Its strings are in the arena or borrow from the request.
 *
 * The account is that of the Host, else that of the path, else that of the Authorization header,
 * whichever exists first.  If none exists, it is the path's if the header names it too; else that
 * of the Host, the path or the header.  exists() is called with well-formed names only.  Of
 * repeated comp or restype parameters the first counts.
 *
 * ERR_INVALID_INPUT for an invalid target, for one without an account, and without a Host;
 * ERR_NO_MEMORY. */
enum err request_url_parse(const struct request *r, account_exists_fn exists, void *arg,
	struct arena *arena, struct request_url *ret, struct err_detail *detail);

/* Parses the target of a request in a batch: absolute, "/account/t", "/t" or "t".  It gets the
 * account, host, base and layout of the outer URL.
 *
 * ERR_INVALID_INPUT if it names another account, in its path or else by its host.  A host that
 * differs from the outer one names the account of its first label.  If the outer URL itself names
 * its account, that always counts; else only if that account exists, because a proxy may have
 * changed the outer host.  ERR_NO_MEMORY. */
enum err request_url_parse_part(const struct request_url *outer, struct span target,
	account_exists_fn exists, void *arg, struct arena *arena, struct request_url *ret,
	struct err_detail *detail);

#endif
