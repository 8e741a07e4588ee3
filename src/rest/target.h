/* SPDX-License-Identifier: MIT
 * The request target in all its layouts: path style, host style, -secondary, absolute form,
 * the doubled account of old clients (protocol section 1.1). */
#ifndef REST_TARGET_H
#define REST_TARGET_H

#include "base/arena.h"
#include "base/err.h"
#include "codec/uri.h"
#include "model/limits.h"
#include "rest/request.h"

#include <stdbool.h>

struct target {
	struct span path;  /* as on the wire, without host and query: what is signed */
	struct span query; /* as on the wire, without '?' */
	struct query_params params;
	char account[LIMIT_ACCOUNT_NAME_MAX + 1];
	bool path_style; /* the account is the first segment */
	bool secondary;
	struct resource resource;
	struct span base; /* "http://host[:port]/" or "http://host:port/account/" */
	struct span comp, restype; /* parameters; p NULL if absent */
};

/* Says whether there is an account of that name. */
typedef bool (*account_exists_fn)(void *arg, struct span name);

/* Strings live in the arena or borrow from the request.  Which layout it is follows from
 * the Host and from which accounts exist; where neither reading names an existing account,
 * the name in the Authorization header decides, else the path's.
 * ERR_INVALID_INPUT for what cannot be parsed. */
enum err target_parse(const struct request *r, account_exists_fn exists, void *arg,
	struct arena *arena, struct target *ret, struct err_detail *detail);

#endif
