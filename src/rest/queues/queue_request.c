/* SPDX-License-Identifier: MIT */
#include "rest/queues/queue_request.h"

#include "base/text.h"
#include "codec/xml.h"
#include "rest/core/error_message.h"
#include "service/queue/queues.h"

#include <string.h>

_Static_assert(sizeof(struct queue_request) <= REST_OWN_BYTES, "fits in the request's context");

enum err queue_request_id(struct request_context *c, uint64_t *ret_id)
{
	return queue_id(c->service, c->secrets.id, c->container, ret_id);
}

/* ---- the path ---- */

static struct span take_segment(struct span *path)
{
	const char *end = path->n > 0 ? memchr(path->p, '/', path->n) : NULL;
	struct span s = span_make(path->p, end != NULL ? (size_t)(end - path->p) : path->n);
	size_t n = end != NULL ? s.n + 1 : s.n;
	*path = span_make(path->p + n, path->n - n);
	return s;
}

enum err queue_request_read_path(struct request_context *c, struct span path)
{
	struct span peek;
	if (path.n > 0 && path.p[0] == '/')
		path = span_make(path.p + 1, path.n - 1);
	struct span queue = take_segment(&path), messages = take_segment(&path);
	struct span message = take_segment(&path);
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

/* ---- parameters ---- */

enum err queue_request_number(struct request_context *c, const char *name, int64_t min, int64_t max,
	int64_t otherwise, int64_t *ret)
{
	struct queue_request *q = queue_request(c);
	struct span text;
	*ret = otherwise;
	if (!context_param(c, name, &text))
		return ERR_OK;
	if (!text_to_i64(text, ret))
		return err_set(&c->detail, ERR_QUERY_VALUE, "%s '%s' is a number.",
			err_text(ERR_QUERY_VALUE), name);
	if (*ret >= min && *ret <= max)
		return ERR_OK;
	q->name = name;
	q->value = text;
	q->min = min;
	q->max = max;
	return ERR_QUERY_RANGE;
}

/* ---- errors ---- */

void queue_write_error(const struct request_context *c, enum err e, struct response *r)
{
	const struct queue_request *q = queue_request(c);
	struct buf message = BUF_INIT(ERROR_MESSAGE_LIMIT);
	error_message(e, &c->detail, false, c->request_id, &message);
	response_clear(r);
	r->status = err_http(e);
	response_header_str(r, "x-ms-error-code", err_code(e));
	response_header_str(r, "Content-Type", "application/xml");
	buf_addf(&r->body, XML_DECLARATION "<Error><Code>%s</Code><Message>", err_code(e));
	xml_add_message(&r->body, buf_span(&message));
	buf_add_str(&r->body, "</Message>");
	if (e == ERR_QUERY_RANGE && q->name != NULL) {
		buf_addf(&r->body,
			"<QueryParameterName>%s</QueryParameterName><QueryParameterValue>",
			q->name);
		xml_add_message(&r->body, q->value);
		buf_addf(&r->body,
			"</QueryParameterValue><MinimumAllowed>%lld</MinimumAllowed>"
			"<MaximumAllowed>%lld</MaximumAllowed>",
			(long long)q->min, (long long)q->max);
	}
	buf_add_str(&r->body, "</Error>");
	buf_fini(&message);
}
