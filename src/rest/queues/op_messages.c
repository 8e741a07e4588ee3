/* SPDX-License-Identifier: MIT
 * Messages: put, get, peek, update, delete and clear. */
#include "codec/http_date.h"
#include "codec/xml.h"
#include "rest/queues/message_body.h"
#include "rest/queues/ops.h"
#include "service/queue/messages.h"

#define WEEK_S (7 * 86400)
#define HIDDEN_DEFAULT_S 30
#define OLD_HIDDEN_MAX_S (2 * 3600)

/* ---- the response ---- */

static void add_date(struct buf *out, const char *name, int64_t ticks)
{
	buf_addf(out, "<%s>", name);
	http_date_add(out, ticks);
	buf_addf(out, "</%s>", name);
}

static void begin_list(struct response *r, int status)
{
	r->status = status;
	response_header_str(r, "Content-Type", "application/xml");
	buf_add_str(&r->body, XML_DECLARATION "<QueueMessagesList>");
}

static void end_list(struct response *r)
{
	buf_add_str(&r->body, "</QueueMessagesList>");
}

/* Adds what all responses have of a message.  A peek shows no receipt. */
static void begin_message(const struct queue_message *m, bool receipt, struct buf *out)
{
	buf_addf(out, "<QueueMessage><MessageId>%s</MessageId>", m->id);
	add_date(out, "InsertionTime", m->inserted);
	add_date(out, "ExpirationTime", m->expires);
	if (receipt) {
		buf_addf(out, "<PopReceipt>%s</PopReceipt>", m->receipt);
		add_date(out, "TimeNextVisible", m->visible);
	}
}

/* XML drops characters that it cannot carry: a message of the mount may have any bytes. */
static void add_message(const struct queue_message *m, bool receipt, struct buf *out)
{
	begin_message(m, receipt, out);
	buf_addf(out, "<DequeueCount>%u</DequeueCount><MessageText>", m->taken);
	xml_add_message(out, m->text);
	buf_add_str(out, "</MessageText></QueueMessage>");
}

static bool add_taken(void *arg, const struct queue_message *m)
{
	add_message(m, true, arg);
	return true;
}

static bool add_peeked(void *arg, const struct queue_message *m)
{
	add_message(m, false, arg);
	return true;
}

/* ---- operations ---- */

static int64_t hidden_max(const struct request_context *c)
{
	return version_has(c->version, VERSION_MESSAGE_UPDATE) ? LIMIT_MESSAGE_HIDDEN_S
							       : OLD_HIDDEN_MAX_S;
}

/* A message must become visible before it expires. */
static enum err read_times(struct request_context *c, int64_t *ret_hidden, int64_t *ret_ttl)
{
	bool any = version_has(c->version, VERSION_MESSAGE_TTL);
	struct span text;
	int64_t max = hidden_max(c);
	enum err e = ERR_OK;
	*ret_ttl = MESSAGE_NEVER;
	if (!any || !context_param(c, "messagettl", &text) || !span_is(text, "-1"))
		e = param_number(c, "messagettl", 1, any ? INT32_MAX : WEEK_S, WEEK_S, ret_ttl);
	if (e == ERR_OK && *ret_ttl != MESSAGE_NEVER && *ret_ttl <= max)
		max = *ret_ttl - 1;
	return e == ERR_OK ? param_number(c, "visibilitytimeout", 0, max, 0, ret_hidden) : e;
}

enum err op_put_message(struct request_context *c, struct response *r)
{
	struct buf text = BUF_INIT(LIMIT_MESSAGE_BYTES + 1);
	struct queue_message m;
	int64_t hidden, ttl;
	uint64_t id;
	enum err e = rest_collection_id(c, &id);
	if (e == ERR_OK)
		e = read_times(c, &hidden, &ttl);
	if (e == ERR_OK)
		e = message_body_read(c->request->body, &text, &c->detail);
	if (e == ERR_OK)
		e = message_put(c->service, ORIGIN_REST, id, buf_span(&text), hidden, ttl, true, &m,
			&c->detail);
	buf_fini(&text);
	if (e != ERR_OK)
		return e;
	r->status = 201;
	if (!version_has(c->version, VERSION_MESSAGE_ANSWER))
		return ERR_OK;
	begin_list(r, 201);
	begin_message(&m, true, &r->body);
	buf_add_str(&r->body, "</QueueMessage>");
	end_list(r);
	return ERR_OK;
}

enum err op_get_messages(struct request_context *c, struct response *r)
{
	int64_t n, hidden;
	uint64_t id;
	enum err e = rest_collection_id(c, &id);
	if (e == ERR_OK)
		e = param_number(c, "numofmessages", 1, LIMIT_MESSAGES_TAKEN, 1, &n);
	if (e == ERR_OK)
		e = param_number(
			c, "visibilitytimeout", 1, hidden_max(c), HIDDEN_DEFAULT_S, &hidden);
	if (e != ERR_OK)
		return e;
	begin_list(r, 200);
	e = message_take(c->service, ORIGIN_REST, id, (unsigned)n, hidden, true, add_taken,
		&r->body, &c->detail);
	end_list(r);
	return e;
}

enum err op_peek_messages(struct request_context *c, struct response *r)
{
	int64_t n;
	uint64_t id;
	enum err e = rest_collection_id(c, &id);
	if (e == ERR_OK)
		e = param_number(c, "numofmessages", 1, LIMIT_MESSAGES_TAKEN, 1, &n);
	if (e != ERR_OK)
		return e;
	begin_list(r, 200);
	e = message_peek(c->service, id, (unsigned)n, add_peeked, &r->body);
	end_list(r);
	return e;
}

static enum err required(struct request_context *c, const char *name, struct span *ret)
{
	if (context_param(c, name, ret))
		return ERR_OK;
	return err_set(&c->detail, ERR_QUERY_VALUE, "%s '%s' is required.",
		err_text(ERR_QUERY_VALUE), name);
}

static enum err update(struct request_context *c, uint64_t id, struct queue_message *ret)
{
	struct buf text = BUF_INIT(LIMIT_MESSAGE_BYTES + 1);
	struct span receipt, given;
	int64_t hidden;
	bool has_text = c->request->body.n > 0;
	enum err e = required(c, "popreceipt", &receipt);
	if (e == ERR_OK)
		e = required(c, "visibilitytimeout", &given);
	if (e == ERR_OK)
		e = param_number(c, "visibilitytimeout", 0, LIMIT_MESSAGE_HIDDEN_S, 0, &hidden);
	if (e == ERR_OK && has_text)
		e = message_body_read(c->request->body, &text, &c->detail);
	struct span written = buf_span(&text);
	if (e == ERR_OK)
		e = message_update(c->service, ORIGIN_REST, id, queue_request(c)->message, receipt,
			hidden, has_text ? &written : NULL, true, ret, &c->detail);
	buf_fini(&text);
	return e;
}

enum err op_update_message(struct request_context *c, struct response *r)
{
	struct queue_message m;
	struct buf date = BUF_INIT(64);
	uint64_t id;
	enum err e = rest_collection_id(c, &id);
	if (e == ERR_OK)
		e = update(c, id, &m);
	if (e != ERR_OK)
		return e;
	r->status = 204;
	response_header_str(r, "x-ms-popreceipt", m.receipt);
	http_date_add(&date, m.visible);
	response_header(r, "x-ms-time-next-visible", buf_span(&date));
	buf_fini(&date);
	return ERR_OK;
}

enum err op_delete_message(struct request_context *c, struct response *r)
{
	struct span receipt;
	uint64_t id;
	enum err e = rest_collection_id(c, &id);
	if (e == ERR_OK)
		e = required(c, "popreceipt", &receipt);
	if (e == ERR_OK)
		e = message_delete(c->service, ORIGIN_REST, id, queue_request(c)->message, receipt,
			true, &c->detail);
	r->status = 204;
	return e;
}

enum err op_clear_messages(struct request_context *c, struct response *r)
{
	uint64_t id;
	enum err e = rest_collection_id(c, &id);
	if (e == ERR_OK)
		e = queue_clear(c->service, ORIGIN_REST, id, &c->detail);
	r->status = 204;
	return e;
}
