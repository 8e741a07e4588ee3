/* SPDX-License-Identifier: MIT
 * Which operation a method on a resource is, since which version, and what it needs.  The
 * table in route.c is protocol section 2.0. */
#ifndef REST_ROUTE_H
#define REST_ROUTE_H

#include "rest/access.h"
#include "rest/call.h"

enum route_condition {
	ROUTE_ANY,
	ROUTE_IF_MATCH,    /* only with If-Match */
	ROUTE_NO_IF_MATCH, /* only without */
};

enum route_body {
	ROUTE_ODATA, /* negotiated format */
	ROUTE_XML,   /* ACL, service properties, stats: always XML */
	ROUTE_MULTIPART,
};

struct route {
	enum resource_kind kind;
	const char *restype, *comp; /* NULL: must be absent */
	const char *method;
	enum route_condition condition;
	int since; /* version; before: ERR_HEADER_MISSING or ERR_NOT_SUPPORTED */
	enum route_body body;
	struct access_need need;
	op_fn op;
};

/* method: the effective one.  ERR_METHOD_NOT_ALLOWED where the resource has others,
 * ERR_URI_INVALID where it has none. */
enum err route_find(const struct target *t, struct span method, bool if_match,
	const struct route **ret, struct err_detail *detail);

#endif
