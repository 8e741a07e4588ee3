/* SPDX-License-Identifier: MIT
 * Routes: which operation a method on a resource is, its first version, and what it requires.  The
 * table in route.c is protocol section 2.0. */
#ifndef REST_CORE_ROUTE_H
#define REST_CORE_ROUTE_H

#include "model/versions.h"
#include "rest/core/access.h"
#include "rest/core/context.h"
#include "rest/tables/operations.h"

enum route_condition {
	ROUTE_ANY,
	ROUTE_IF_MATCH,    /* only with If-Match */
	ROUTE_NO_IF_MATCH, /* only without If-Match */
};

enum route_body {
	ROUTE_ODATA, /* negotiated format */
	ROUTE_EMPTY, /* the response has no body, so any requested format is accepted */
	ROUTE_XML,   /* ACL, service properties, stats: always XML */
	ROUTE_MULTIPART,
};

struct route {
	enum resource_kind kind;
	const char *restype, *comp; /* NULL: the parameter must be absent */
	const char *method;
	enum route_condition condition;
	/* the first version; before: ERR_HEADER_MISSING or ERR_NOT_SUPPORTED */
	enum version_rule since;
	enum route_body body;
	struct access_need need;
	enum rest_operation operation;
};

/* Finds the route of c->method on c->url.  ERR_METHOD_NOT_ALLOWED if the resource has other
 * methods; ERR_URI_INVALID if it has none.  Before the route's first version: ERR_HEADER_MISSING
 * for an upsert, which was an update without If-Match, else ERR_NOT_SUPPORTED. */
enum err route_find(struct request_context *c, const struct route **ret);

#endif
