/* SPDX-License-Identifier: MIT
 * What the queues know of a request besides its context: the resource, and a parameter that is out
 * of range. */
#ifndef REST_QUEUES_QUEUE_REQUEST_H
#define REST_QUEUES_QUEUE_REQUEST_H

#include "rest/core/rest_service.h"
#include "rest/core/xml_error.h"

enum queue_resource {
	QUEUE_NOTHING, /* a path that no operation has */
	QUEUE_SERVICE,
	QUEUE_ITSELF,
	QUEUE_MESSAGES,
	QUEUE_PEEK, /* the messages with peekonly=true */
	QUEUE_MESSAGE,
};

struct queue_request {
	struct span message;      /* the id in the path */
	struct param_range range; /* of ERR_QUERY_RANGE */
};

/* Returns the queues' part of a context. */
static inline struct queue_request *queue_request(const struct request_context *c)
{
	return c->own;
}

/* Calls param_number(), and keeps the bounds for the answer. */
static inline enum err queue_request_number(struct request_context *c, const char *name,
	int64_t min, int64_t max, int64_t otherwise, int64_t *ret)
{
	return param_number(c, &queue_request(c)->range, name, min, max, otherwise, ret);
}
/* Sets *ret_id to the id of the URL's queue.  ERR_QUEUE_NOT_FOUND. */
enum err queue_request_id(struct request_context *c, uint64_t *ret_id);

/* Parts of the description (rest_service.h). */
enum err queue_request_read_path(struct request_context *c, struct span path);
int queue_request_version(const struct request_context *c);
enum request_cost queue_request_cost(const struct request *r);
void queue_write_error(const struct request_context *c, enum err e, struct response *r);

#endif
