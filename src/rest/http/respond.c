/* SPDX-License-Identifier: MIT
 * Converts a response to MHD's, within the memory limit of all connections. */
#include "base/log.h"
#include "rest/http/connection.h"
#include "service/core/heat.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A body that needs several writes, so that rowfs sees if the client reads it. */
struct outgoing {
	struct connection *c;
	char *data;
	size_t n;
};

/* ---- memory ---- */

bool connection_hold(struct connection *c, size_t n)
{
	size_t before = c->held;
	if (n == before)
		return true;
	c->held = n;
	/* Unsigned arithmetic: the difference may be negative. */
	size_t all = atomic_fetch_add(&c->rest->held, n - before) + (n - before);
	size_t high = atomic_load_explicit(&c->rest->held_high, memory_order_relaxed);
	while (all > high && !atomic_compare_exchange_weak(&c->rest->held_high, &high, all))
		;
	return n < before || all <= (size_t)c->rest->limits.memory_kib << 10;
}

bool connection_hold_body(struct connection *c, const struct buf *b)
{
	return connection_hold(c, b->len > SMALL_BYTES ? b->cap : 0);
}

static bool may_have(struct buf_memory *m, size_t cap)
{
	struct connection *c = (struct connection *)(void *)((char *)m -
		offsetof(struct connection, response_memory));
	size_t before = c->held;
	if (cap <= SMALL_BYTES || connection_hold(c, cap))
		return true;
	/* The bytes that it will not get must not refuse the responses of others. */
	(void)connection_hold(c, before);
	c->response_too_large = true;
	return false;
}

/* ---- answers ---- */

struct request connection_request(const struct connection *c)
{
	return (struct request){
		.method = c->method != NULL ? span_of(c->method) : SPAN_LIT(""),
		/* Never NULL, not even without a target ("GET \0 HTTP/1.1"). */
		.target = c->target.len > 0 ? buf_span(&c->target) : SPAN_LIT(""),
		.headers = c->headers,
		.nheaders = c->nheaders,
		.body = buf_span(&c->body),
		.stream = c->stream,
		.peer = &c->peer,
		.since_us = c->since_us,
		.id = c->id,
		.tenant = c->rest->tenant,
		.stopping = atomic_load_explicit(&c->rest->stopping, memory_order_relaxed),
		.facts = c->access != NULL ? &c->access->facts : NULL,
		.oauth = c->rest->oauth,
	};
}

static void count_sent(struct connection *c, uint64_t n)
{
	if (c->access != NULL)
		c->access->sent = n;
}

static ssize_t read_outgoing(void *arg, uint64_t at, char *buf, size_t max)
{
	struct outgoing *o = arg;
	if (at >= o->n)
		return MHD_CONTENT_READER_END_OF_STREAM;
	size_t n = o->n - (size_t)at < max ? o->n - (size_t)at : max;
	memcpy(buf, o->data + at, n);
	count_sent(o->c, at + n);
	watchdog_phase(&o->c->watchdog, PHASE_REPLY, o->c->rest->limits.progress_ms);
	return (ssize_t)n;
}

static void free_outgoing(void *arg)
{
	struct outgoing *o = arg;
	free(o->data);
	free(o);
}

static struct MHD_Response *large_response(struct connection *c)
{
	struct outgoing *o = malloc(sizeof(*o));
	if (o == NULL)
		return NULL;
	*o = (struct outgoing){ c, c->response.body.data, c->response.body.len };
	struct MHD_Response *r = MHD_create_response_from_callback(
		o->n, PROGRESS_BYTES, read_outgoing, o, free_outgoing);
	if (r == NULL)
		free(o);
	return r;
}

/* ---- a body that is read while it is sent ---- */

struct outgoing_source {
	struct connection *c;
	struct response_source from;
};

static ssize_t read_source(void *arg, uint64_t at, char *buf, size_t max)
{
	struct outgoing_source *o = arg;
	if (at >= o->from.size)
		return MHD_CONTENT_READER_END_OF_STREAM;
	size_t n = o->from.size - at < max ? (size_t)(o->from.size - at) : max;
	if (o->from.read(o->from.arg, at, buf, n) != ERR_OK)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	count_sent(o->c, at + n);
	watchdog_phase(&o->c->watchdog, PHASE_REPLY, o->c->rest->limits.progress_ms);
	return (ssize_t)n;
}

static void free_source(void *arg)
{
	struct outgoing_source *o = arg;
	o->from.free(o->from.arg);
	free(o);
}

static struct MHD_Response *response_from_source(struct connection *c)
{
	struct outgoing_source *o = malloc(sizeof(*o));
	if (o == NULL)
		return NULL;
	*o = (struct outgoing_source){ c, c->response.source };
	struct MHD_Response *r = MHD_create_response_from_callback(
		o->from.size, PROGRESS_BYTES, read_source, o, free_source);
	if (r == NULL)
		free(o);
	else
		c->response.source = (struct response_source){ 0 };
	return r;
}

static bool may_have_body(int status)
{
	return status != MHD_HTTP_NO_CONTENT && status != MHD_HTTP_NOT_MODIFIED;
}

/* Moves the memory of the body into the result. */
static struct MHD_Response *response_with_body(struct connection *c)
{
	static char none[] = "";
	struct response *r = &c->response;
	struct MHD_Response *ret;
	if (r->source.arg != NULL && may_have_body(r->status))
		return response_from_source(c);
	if (r->body.len == 0 || !may_have_body(r->status))
		return MHD_create_response_from_buffer(0, none, MHD_RESPMEM_PERSISTENT);
	if (r->body.len > PROGRESS_BYTES) {
		ret = large_response(c);
	} else {
		count_sent(c, strcmp(c->method, MHD_HTTP_METHOD_HEAD) != 0 ? r->body.len : 0);
		ret = MHD_create_response_from_buffer_with_free_callback(
			r->body.len, r->body.data, free);
	}
	if (ret != NULL)
		r->body = BUF_INIT(r->body.limit);
	return ret;
}

/* MHD writes these headers itself. */
static bool is_left_out(const struct response *r, const char *name)
{
	if (strchr("CcTt", name[0]) == NULL)
		return false;
	return strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0 ||
		strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0 ||
		strcasecmp(name, MHD_HTTP_HEADER_CONNECTION) == 0 ||
		(!may_have_body(r->status) && strcasecmp(name, MHD_HTTP_HEADER_CONTENT_TYPE) == 0);
}

static bool add_headers(const struct connection *c, struct MHD_Response *m)
{
	const struct response *r = &c->response;
	const char *name, *value;
	bool ok = true;
	for (size_t at = 0; response_header_next(r, &at, &name, &value);)
		if (!is_left_out(r, name))
			ok = MHD_add_response_header(m, name, value) == MHD_YES && ok;
	/* The service sends it with 204 too, and clients expect it. */
	if (r->status == MHD_HTTP_NO_CONTENT) {
		(void)MHD_set_response_options(
			m, MHD_RF_INSANITY_HEADER_CONTENT_LENGTH, MHD_RO_END);
		ok = MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_LENGTH, "0") == MHD_YES &&
			ok;
	}
	if (c->close || atomic_load_explicit(&c->rest->stopping, memory_order_relaxed))
		ok = MHD_add_response_header(m, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES &&
			ok;
	return ok;
}

/* The query is left out: it may contain a signature. */
static void log_failure(const struct connection *c)
{
	const struct response *r = &c->response;
	if (r->status < 500 || r->status == MHD_HTTP_NOT_IMPLEMENTED || c->late || r->ordered)
		return;
	/* A configured throttle refuses many requests on purpose. */
	if (r->status == MHD_HTTP_SERVICE_UNAVAILABLE &&
		heat_target(service_heat(c->rest->service)) != 0)
		return;
	const char *code = response_header_get(r, "x-ms-error-code");
	const char *id = response_header_get(r, "x-ms-request-id");
	size_t n = c->target.len > 0 ? strcspn(c->target.data, "?") : 0;
	log_client(LOG_KIND_REST, log_source(c->peer.ip), "REST: %.16s %.*s: %d %s, request %s",
		c->method, n < 300 ? (int)n : 300, n > 0 ? c->target.data : "", r->status,
		code != NULL ? code : "-", id != NULL ? id : "-");
}

static void note_response(struct connection *c)
{
	if (c->access == NULL)
		return;
	struct request q = connection_request(c);
	c->access->service = c->served->name;
	c->access->received = c->received;
	access_line_response(c->access, &q, &c->response);
}

/* Returns true for the result of a read.  The result of a change must not become an error.  The
 * first part of a batch decides. */
static bool is_a_reading(const struct response *r)
{
	static const char line[] = "\r\n\r\nHTTP/1.1 ";
	size_t n = r->body.len < 4096 ? r->body.len : 4096, len = sizeof(line) - 1;
	if (r->status != MHD_HTTP_ACCEPTED)
		return r->status == MHD_HTTP_OK;
	const char *at = memmem(r->body.data, n, line, len);
	return at != NULL && span_starts(span_make(at + len, n - len), SPAN_LIT("200"));
}

void connection_hold_response(struct connection *c)
{
	struct response *r = &c->response;
	buf_fini(&c->body);
	if (r->body.len > SMALL_BYTES)
		buf_trim(&r->body);
	if (!c->response_too_large && (connection_hold_body(c, &r->body) || !is_a_reading(r)))
		return;
	c->response_too_large = false;
	struct request q = connection_request(c);
	response_fini(r);
	(void)connection_hold(c, 0);
	rest_refuse(c->served, NULL, &q, ERR_THROTTLED, r);
}

void connection_handle(struct connection *c)
{
	struct request q = connection_request(c);
	/* A change is done by the time its response is made, so that must not be refused. */
	if (strcmp(c->method, MHD_HTTP_METHOD_GET) == 0)
		q.memory = &c->response_memory;
	c->response_memory.may_have = may_have;
	rest_handle(c->served, c->rest->service, &q, &c->response);
}

enum MHD_Result connection_respond(struct connection *c)
{
	connection_hold_response(c);
	log_failure(c);
	note_response(c);
	/* A preflight has no credential. */
	if (c->response.status != 0 && c->response.status < 400 &&
		strcmp(c->method, MHD_HTTP_METHOD_OPTIONS) != 0)
		atomic_store_explicit(&c->watchdog.known, true, memory_order_relaxed);
	c->state = STATE_SENT;
	if (c->response.hang_up) {
		watchdog_phase(&c->watchdog, PHASE_REPLY, 0);
		return MHD_NO;
	}
	/* Without a status there was no memory even for an error. */
	struct MHD_Response *m = c->response.status != 0 ? response_with_body(c) : NULL;
	if (m == NULL || !add_headers(c, m)) {
		log_client(LOG_KIND_REST, log_source(c->peer.ip), "REST: no memory for a response");
		if (m != NULL)
			MHD_destroy_response(m);
		watchdog_phase(&c->watchdog, PHASE_REPLY, 0);
		return MHD_NO;
	}
	/* MHD has no room for a response if the head has thousands of parameters.  It does not
	 * close the connection itself then. */
	enum MHD_Result ret = MHD_queue_response(c->mhd, (unsigned)c->response.status, m);
	watchdog_phase(&c->watchdog, PHASE_REPLY, ret == MHD_YES ? c->rest->limits.progress_ms : 0);
	MHD_destroy_response(m);
	return ret;
}

enum MHD_Result connection_refuse(struct connection *c, enum err e)
{
	struct request q = connection_request(c);
	if (c->response.status == 0)
		rest_refuse(c->served, c->rest->service, &q, e, &c->response);
	if (c->refusal_status != 0)
		c->response.status = c->refusal_status;
	return connection_respond(c);
}
