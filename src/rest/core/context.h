/* SPDX-License-Identifier: MIT
 * The context of a request: what handle.c finds out before it runs the operation. */
#ifndef REST_CORE_CONTEXT_H
#define REST_CORE_CONTEXT_H

#include "base/arena.h"
#include "rest/core/access.h"
#include "rest/core/request.h"
#include "rest/core/request_url.h"
#include "rest/core/response.h"
#include "service/core/accounts.h"

#include <stdint.h>

struct rest_service;
struct route;

/* A parameter that is out of range, as sent, and its bounds; name is NULL for none. */
struct param_range {
	const char *name;
	struct span value;
	int64_t min, max;
};

struct request_context {
	const struct rest_service *rest;
	struct service *service;
	const struct request *request;
	struct span method; /* after X-HTTP-Method */
	struct request_url url;
	unsigned kind;                  /* of the resource; rest->routes compares it */
	struct span container;          /* the table, queue or container of the URL; "" for none */
	struct span blob;               /* "container/blob", for a SAS; "" for none */
	const struct route *route;      /* NULL until it is found */
	struct account_secrets secrets; /* handle.c frees and wipes it */
	struct access access;
	int version;      /* such as 20190202 (model/versions.h) */
	unsigned seconds; /* from `timeout`; 0: not given */
	char request_id[37];
	void *own;                       /* of the service (rest_service.h) */
	struct arena *arena;             /* owns everything that lives as long as the request */
	struct err_detail detail;        /* of the operation's error */
	struct param_range out_of_range; /* of ERR_QUERY_RANGE */
};

/* Sets *ret to the value of a query parameter.  Returns false if it is absent. */
bool context_param(const struct request_context *c, const char *name, struct span *ret);
/* Returns it, or "" if it is absent. */
struct span context_param_or_empty(const struct request_context *c, const char *name);

/* Sets the version from the header, or from the parameters of a SAS.  Without either it is the
 * service's default.  The same default applies with ERR_HEADER_INVALID, for an unknown version. */
enum err context_read_version(struct request_context *c);
/* Reads `timeout`.  ERR_QUERY_VALUE. */
enum err context_read_timeout(struct request_context *c);

#endif
