/* SPDX-License-Identifier: MIT
 * The request target in all its layouts: path style, host style, -secondary, absolute form,
 * the doubled account of old clients (protocol section 1.1). */
#ifndef REST_REQUEST_URL_H
#define REST_REQUEST_URL_H

#include "base/arena.h"
#include "base/err.h"
#include "codec/uri.h"
#include "model/limits.h"
#include "rest/request.h"

#include <stdbool.h>

struct request_url {
	struct span path;  /* as on the wire, without host and query: what is signed */
	struct span query; /* as on the wire, without '?' */
	struct query_params params;
	char account[LIMIT_ACCOUNT_NAME_MAX + 1];
	bool path_style; /* the account is the first segment */
	bool host_style; /* the account is the host's first label */
	bool secondary;
	struct resource resource;
	struct span host;          /* with its port */
	struct span base;          /* "http://host[:port]/" or "http://host:port/account/" */
	struct span comp, restype; /* parameters; p NULL if absent */
};

/* Says whether there is an account of that name. */
typedef bool (*account_exists_fn)(void *arg, struct span name);

/* Strings live in the arena or borrow from the request.  Which layout it is follows from
 * the Host and from which accounts exist: the Host's, else the path's, else the one that the
 * Authorization header names (the whole path is then the resource); where none exists, the
 * path's if it is signed for, else the Host's, the path's, the header's.  exists() is asked
 * about well-formed names only.  Two parameters comp or restype: the first counts.
 * ERR_INVALID_INPUT for what cannot be parsed, names no account or comes without a Host;
 * ERR_NO_MEMORY. */
enum err request_url_parse(const struct request *r, account_exists_fn exists, void *arg,
	struct arena *arena, struct request_url *ret, struct err_detail *detail);

/* The target of a request inside a batch: absolute, "/account/t", "/t" or "t".  It is read
 * as one of the outer target's account, whose account, host, base and layout it gets.
 * ERR_INVALID_INPUT, also where the path names another account, or where the path names none
 * and the host another one.  A host other than the outer one names the account of its first
 * label, if the outer URL itself names its account (no matter whether that account exists),
 * else if there is such an account: a proxy may have changed the outer host.
 * ERR_NO_MEMORY. */
enum err request_url_parse_part(const struct request_url *outer, struct span target,
	account_exists_fn exists, void *arg, struct arena *arena, struct request_url *ret,
	struct err_detail *detail);

#endif
