/* SPDX-License-Identifier: MIT
 * Which operation a method on a resource is, since which version, and what it needs.  The
 * table in route.c is protocol section 2.0. */
#ifndef REST_ROUTE_H
#define REST_ROUTE_H

#include "model/versions.h"
#include "rest/access.h"
#include "rest/context.h"
#include "rest/operations.h"

enum route_condition {
	ROUTE_ANY,
	ROUTE_IF_MATCH,    /* only with If-Match */
	ROUTE_NO_IF_MATCH, /* only without */
};

enum route_body {
	ROUTE_ODATA, /* negotiated format */
	ROUTE_EMPTY, /* no body in the answer: whatever format is asked for will do */
	ROUTE_XML,   /* ACL, service properties, stats: always XML */
	ROUTE_MULTIPART,
};

struct route {
	enum resource_kind kind;
	const char *restype, *comp; /* NULL: must be absent */
	const char *method;
	enum route_condition condition;
	enum version_rule since; /* before: ERR_HEADER_MISSING or ERR_NOT_SUPPORTED */
	enum route_body body;
	struct access_need need;
	enum rest_operation operation;
};

/* What the call's method on its target is.  ERR_METHOD_NOT_ALLOWED where the resource has
 * others, ERR_URI_INVALID where it has none; before the operation's first version
 * ERR_HEADER_MISSING (an upsert was an update without its If-Match) or ERR_NOT_SUPPORTED. */
enum err route_find(struct request_context *c, const struct route **ret);

#endif
