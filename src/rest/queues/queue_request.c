/* SPDX-License-Identifier: MIT */
#include "rest/queues/queue_request.h"

#include <string.h>

_Static_assert(sizeof(struct queue_request) <= REST_OWN_BYTES, "fits in the request's context");

/* ---- the path ---- */

enum err queue_request_read_path(struct request_context *c, struct span path)
{
	struct span peek;
	if (path.n > 0 && path.p[0] == '/')
		path = span_make(path.p + 1, path.n - 1);
	struct span queue = span_take(&path, '/'), messages = span_take(&path, '/');
	struct span message = span_take(&path, '/');
	enum err e = percent_decode(queue, false, c->arena, &c->container, &c->detail);
	if (e == ERR_OK)
		e = percent_decode(
			message, false, c->arena, &queue_request(c)->message, &c->detail);
	if (queue.n == 0)
		c->kind = messages.n == 0 ? QUEUE_SERVICE : QUEUE_NOTHING;
	else if (messages.n == 0)
		c->kind = message.n == 0 ? QUEUE_ITSELF : QUEUE_NOTHING;
	else if (!span_is(messages, "messages") || path.n > 0)
		c->kind = QUEUE_NOTHING;
	else if (message.n > 0)
		c->kind = QUEUE_MESSAGE;
	else
		c->kind = context_param(c, "peekonly", &peek) && span_is(peek, "true")
			? QUEUE_PEEK
			: QUEUE_MESSAGES;
	return e;
}

int queue_request_version(const struct request_context *c)
{
	(void)c;
	return VERSION_NEWEST;
}

/* Clearing takes several commits. */
enum request_cost queue_request_cost(const struct request *r)
{
	if (span_is(r->method, "OPTIONS"))
		return COST_BOUNDED;
	return span_is(r->method, "DELETE") &&
			memmem(r->target.p, r->target.n, "/messages", 9) != NULL &&
			memmem(r->target.p, r->target.n, "popreceipt=", 11) == NULL
		? COST_LONG
		: COST_USUAL;
}
