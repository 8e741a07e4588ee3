/* SPDX-License-Identifier: MIT
 * Routes: which operation a method on a resource is, its first version, and what it requires.  Each
 * service has a table of them. */
#ifndef REST_CORE_ROUTE_H
#define REST_CORE_ROUTE_H

#include "model/versions.h"
#include "rest/core/access.h"
#include "rest/core/context.h"

enum route_condition {
	ROUTE_ANY,
	ROUTE_IF_MATCH,    /* only with If-Match */
	ROUTE_NO_IF_MATCH, /* only without If-Match */
};

enum route_body {
	ROUTE_ODATA,     /* negotiated format */
	ROUTE_EMPTY,     /* the response has no body, so any requested format is accepted */
	ROUTE_XML,       /* always XML */
	ROUTE_MULTIPART, /* each part is checked by its own route */
};

struct route {
	unsigned kind;              /* c->kind */
	const char *restype, *comp; /* NULL: the parameter must be absent */
	const char *method;         /* NULL: any */
	enum route_condition condition;
	/* the first version; before: ERR_HEADER_MISSING or ERR_NOT_SUPPORTED */
	enum version_rule since;
	enum route_body body;
	struct access_need need;
	unsigned operation; /* its number for the metrics */
	/* Runs the operation: fills the response on ERR_OK; after an error handle.c writes it from
	 * c->detail.  NULL: the operation is not implemented. */
	enum err (*run)(struct request_context *c, struct response *r);
};

/* Sets c->route to that of c->method on the resource.  ERR_METHOD_NOT_ALLOWED if the resource has other
 * methods; ERR_URI_INVALID if it has none; ERR_NOT_SUPPORTED without a function.  Before the route's first version: ERR_HEADER_MISSING
 * for an upsert, which was an update without If-Match, else ERR_NOT_SUPPORTED. */
enum err route_find(struct request_context *c);

#endif
