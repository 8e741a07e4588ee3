/* SPDX-License-Identifier: MIT
 * A storage service on the socket, such as the tables, described once as a constant.  rest/core and
 * rest/http serve every service by its description and never ask which one it is.
 *
 * The functions of the description get the request's context.  c->own is memory of the service, of
 * own_bytes and zeroed. */
#ifndef REST_CORE_REST_SERVICE_H
#define REST_CORE_REST_SERVICE_H

#include "model/versions.h"
#include "rest/core/context.h"
#include "rest/core/route.h"
#include "service/core/metrics.h"
#include "service/sas/sas.h"

/* The most bytes of c->own. */
#define REST_OWN_BYTES 512

struct rest_collections;

/* How long handling may occupy a thread. */
enum request_cost {
	COST_BOUNDED, /* a bounded time: the thread of the connection does it */
	COST_USUAL,   /* waits for a commit or for other requests */
	COST_LONG,    /* may search for seconds */
};

/* Bodies that are not collected.  A small one is collected all the same. */
struct rest_streams {
	uint64_t limit; /* bytes, of any body */
	/* Returns the most bytes of this body.  The request is permitted, and its route is known. */
	uint64_t (*limit_of)(const struct request_context *c);
	/* Returns true if the body of this request can be taken in parts. */
	bool (*wanted)(const struct request *r);
	/* The stream gets the parts in order, then end().  free() drops what no operation has
	 * taken.  begin() borrows the request, whose body is not whole. */
	enum err (*begin)(struct service *service, const struct request *r, void **ret);
	enum err (*add)(void *stream, struct span bytes);
	enum err (*end)(void *stream);
	void (*free)(void *stream);
};

struct rest_service {
	const char *name; /* "table": the second label of a host */
	/* Where the emulator serves it, with the prefix that names the service. */
	const char *default_endpoint;
	char letter;       /* in the services (ss) of an account SAS */
	size_t body_limit; /* bytes, of bodies that are collected */
	size_t own_bytes;
	enum version_rule since;       /* its first version */
	const struct sas_service *sas; /* what a service SAS signs and permits */
	/* Parameters that may be sent once, besides comp, restype and timeout; NULL at the end. */
	const char *const *params;
	const struct route *routes;
	size_t nroutes;
	/* The names of the operations for the metrics, and the two that have no route. */
	const char *const *operations;
	size_t noperations;
	size_t preflight, other; /* OPTIONS; refused before the operation was known */
	enum metrics_front_end front_end;
	enum account_service properties;
	enum err being_deleted; /* what a table or queue answers that is being deleted */

	/* Estimates the cost from the request alone.  Takes a few us, at most 1 ms. */
	enum request_cost (*cost)(const struct request *r);
	/* Append what SharedKey signs before the canonical path, and after it. */
	void (*sign_head)(const struct request *r, bool lite, struct buf *out);
	void (*sign_query)(const struct request_url *url, bool lite, struct buf *out);
	/* Sets c->kind, c->container and the service's own resource from the path behind the
	 * account.  The path is percent-encoded. */
	enum err (*read_path)(struct request_context *c, struct span path);
	/* Returns the version of a request that names none. */
	int (*default_version)(const struct request_context *c);
	/* Prepares write_error().  Runs also for an invalid URL.  NULL: nothing to do. */
	void (*begin)(struct request_context *c);
	/* Changes c->method by a header.  NULL: nothing to do. */
	enum err (*read_method)(struct request_context *c);
	/* Checks the options of a request that is permitted.  NULL: nothing to do. */
	enum err (*check)(struct request_context *c);
	/* Returns the container that the body names, for a URL that names none; "" for none.  It is
	 * asked for faults on order only.  NULL: no body names one. */
	struct span (*named_by_body)(struct request_context *c);
	/* Gives a request without a credential what needs none, in c->access.  Returns false to refuse
	 * it.  NULL: nothing needs none. */
	bool (*admits_anonymous)(struct request_context *c);
	/* How the operations of rest/core/collections.h serve it.  NULL: it has no collections. */
	const struct rest_collections *collections;
	/* How large bodies are taken in parts.  NULL: all are collected. */
	const struct rest_streams *streams;
	/* Frees what the others allocated.  NULL: nothing to do. */
	void (*end)(struct request_context *c);
	/* Replaces the response by an error.  c->detail says what is wrong. */
	void (*write_error)(const struct request_context *c, enum err e, struct response *r);
	/* Answers every request itself, without accounts, credentials and counts.  e: the error that
	 * the HTTP server found.  Only name, body_limit, cost and admit are used besides.  NULL: a
	 * storage service. */
	void (*answer)(struct service *service, const struct request *request, enum err e,
		struct response *r);
	/* With answer(): returns an error if answer() refuses this head, whatever the body is.  NULL: no
	 * head is refused before its body. */
	enum err (*admit)(const struct request *request);
	bool while_stopping; /* takes requests also after rest_drain() */
};

#endif
