/* SPDX-License-Identifier: MIT */
#include "rest/queues/message_body.h"

#include "codec/xml_events.h"
#include "model/limits.h"

struct reader {
	struct buf *out;
	struct err_detail *detail;
	unsigned depth;
	bool inside, found;
};

static enum err on_start(void *arg, const struct xml_start *start)
{
	struct reader *r = arg;
	r->depth++;
	if (r->depth > 2)
		return ERR_OK;
	r->inside = r->depth == 2;
	if (!span_is(start->name, r->inside ? "MessageText" : "QueueMessage") ||
		(r->inside && r->found))
		return err_set(r->detail, ERR_XML_INVALID,
			"The body is <QueueMessage> with one <MessageText>.");
	r->found = r->inside;
	return ERR_OK;
}

static enum err on_end(void *arg)
{
	struct reader *r = arg;
	if (r->depth-- == 2)
		r->inside = false;
	return ERR_OK;
}

static enum err on_text(void *arg, struct span text)
{
	struct reader *r = arg;
	if (!r->inside || r->depth != 2)
		return ERR_OK;
	if (r->out->len + text.n > LIMIT_MESSAGE_BYTES)
		return ERR_MESSAGE_TOO_LARGE;
	buf_add_span(r->out, text);
	return buf_ok(r->out) ? ERR_OK : ERR_NO_MEMORY;
}

enum err message_body_read(struct span body, struct buf *out, struct err_detail *detail)
{
	static const struct xml_handler handler = { on_start, on_end, on_text };
	struct reader r = { .out = out, .detail = detail };
	enum err e = xml_events(body, MESSAGE_BODY_LIMIT, &handler, &r, detail);
	if (e == ERR_OK && !r.found)
		e = err_set(detail, ERR_XML_INVALID,
			"The body is <QueueMessage> with one <MessageText>.");
	return e;
}
