/* SPDX-License-Identifier: MIT
 * The part of a request that only the queue service reads: the resource. */
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
	struct span message; /* the id in the path */
};

/* Returns the queues' part of a context. */
static inline struct queue_request *queue_request(const struct request_context *c)
{
	return c->own;
}

/* Parts of the description (rest_service.h). */
enum err queue_request_read_path(struct request_context *c, struct span path);
int queue_request_version(const struct request_context *c);
enum request_cost queue_request_cost(const struct request *r);

#endif
