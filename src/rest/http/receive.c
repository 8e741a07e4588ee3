/* SPDX-License-Identifier: MIT
 * Receives a request: checks its head, takes its body, and dispatches it.
 *
 * MHD can send a response before or after the body, but not during it.  So a refused body is read
 * up to a limit and discarded. */
#include "base/clock.h"
#include "base/text.h"
#include "rest/core/cors.h"
#include "rest/http/connection.h"
#include "rest/http/malformed.h"
#include "rest/http/services.h"

#include <string.h>
#include <strings.h>

/* What the response's head needs of CONNECTION_MEMORY, and what MHD needs for each header. */
#define ANSWER_MEMORY ((size_t)4 << 10)
#define HEADER_MEMORY 80
/* How much of a refused body is read, so that the client gets the response and not a reset. */
#define DRAIN_LIMIT ((uint64_t)16 << 20)

/* ---- the head ---- */

/* Refuses headers that a proxy in front of this server could read differently, such as
 * "Content-Length : 5" or "A: b\rContent-Length: 5". */
static bool is_sound(const struct header *h)
{
	return cors_is_header_name(h->name) &&
		(h->value.n == 0 ||
			(memchr(h->value.p, '\0', h->value.n) == NULL &&
				memchr(h->value.p, '\r', h->value.n) == NULL));
}

static enum MHD_Result keep_header(void *arg, enum MHD_ValueKind kind, const char *name,
	size_t name_len, const char *value, size_t value_len)
{
	struct connection *c = arg;
	(void)kind;
	if (c->nheaders == HEADERS_MAX) {
		c->too_many_headers = true;
		return MHD_NO;
	}
	c->headers[c->nheaders++] = (struct header){ span_make(name, name_len),
		span_make(value != NULL ? value : "", value_len) };
	c->bad_header = c->bad_header || !is_sound(&c->headers[c->nheaders - 1]);
	return MHD_YES;
}

static bool takes_body(struct span method)
{
	return span_is(method, "PUT") || span_is(method, "POST") || span_is(method, "MERGE") ||
		span_is(method, "PATCH");
}

static enum err refused_with(struct connection *c, enum err e)
{
	c->close = true;
	return e;
}

/* Returns true if MHD's memory has room for the head of the response. */
static bool head_fits(const struct connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	size_t n = info != NULL ? info->header_size : CONNECTION_MEMORY;
	return !c->too_many_headers &&
		n + (c->nheaders + 1) * HEADER_MEMORY + ANSWER_MEMORY <= CONNECTION_MEMORY;
}

/* Refuses requests whose host, headers or length are ambiguous.  Otherwise a proxy could see
 * another request than this server. */
static enum err check_framing(struct connection *c, const struct request *q, uint64_t *ret_length)
{
	size_t lengths = request_header_count(q, MHD_HTTP_HEADER_CONTENT_LENGTH);
	size_t codings = request_header_count(q, MHD_HTTP_HEADER_TRANSFER_ENCODING);
	struct span coding = request_header(q, MHD_HTTP_HEADER_TRANSFER_ENCODING);
	struct span length = request_header(q, MHD_HTTP_HEADER_CONTENT_LENGTH);
	*ret_length = 0;
	if (c->bad_header || lengths + codings > 1 ||
		request_header_count(q, MHD_HTTP_HEADER_HOST) > 1)
		return refused_with(c, ERR_HEADER_INVALID);
	if (codings == 1 && (coding.n != 7 || strncasecmp(coding.p, "chunked", 7) != 0))
		return refused_with(c, ERR_HEADER_INVALID);
	if (lengths == 1 &&
		(length.n == 0 || length.p[0] == '-' || !text_to_u64(length, ret_length)))
		return refused_with(c, ERR_HEADER_INVALID);
	if (lengths + codings == 0 && takes_body(q->method))
		return refused_with(c, ERR_LENGTH_MISSING);
	return ERR_OK;
}

/* A service refuses a collected body itself, so more of it is taken. */
static void set_limits(struct connection *c, const struct request *q)
{
	const struct rest_streams *streams = c->served->streams;
	c->streams = streams != NULL && streams->wanted(q);
	c->limit = c->streams ? streams->limit : c->served->body_limit + BODY_SLACK;
	c->body.limit = c->streams ? 2 * PART_BYTES : (size_t)c->limit;
}

static bool is_preflight(const struct connection *c)
{
	return strcmp(c->method, MHD_HTTP_METHOD_OPTIONS) == 0;
}

/* Checks the credential before a large body takes memory.  The body of a preflight is ignored. */
static void admit(struct connection *c)
{
	if (c->admitted || is_preflight(c) || c->refusal != ERR_OK)
		return;
	struct request q = connection_request(c);
	q.body = SPAN_LIT("");
	uint64_t limit = c->limit;
	c->refusal = rest_admit(c->served, c->rest->service, &q, &limit, &c->response);
	if (c->streams)
		c->limit = limit;
	c->admitted = c->refusal == ERR_OK;
	if (c->admitted)
		atomic_store_explicit(&c->watchdog.known, true, memory_order_relaxed);
}

enum MHD_Result connection_begin(struct connection *c, const char *method, const char *version)
{
	uint64_t length;
	c->state = STATE_BODY;
	c->method = method;
	if (c->access != NULL)
		access_clean(span_of(version), c->access->version, sizeof(c->access->version));
	c->nheaders = 0;
	c->since_us = 0;
	c->too_many_headers = c->bad_header = c->admitted = false;
	(void)MHD_get_connection_values_n(c->mhd, MHD_HEADER_KIND, keep_header, c);
	if (!c->too_many_headers && !head_is_well_formed(c, method, version))
		c->bad_header = true;
	struct request q = connection_request(c);
	if (!head_fits(c)) {
		c->refusal_status = MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE;
		c->close = true;
		return connection_refuse(c, ERR_HEADER_INVALID);
	}
	if (!buf_ok(&c->target))
		return connection_refuse(c, refused_with(c, ERR_NO_MEMORY));
	enum err e = check_framing(c, &q, &length);
	if (e != ERR_OK)
		return connection_refuse(c, e);
	watchdog_phase(&c->watchdog, PHASE_BODY, c->rest->limits.progress_ms);
	bool waits = request_header_count(&q, MHD_HTTP_HEADER_EXPECT) > 0;
	const struct rest_service *served = services_of_host(&q, c->of_socket);
	if (served == NULL)
		return connection_refuse(c, ERR_URI_INVALID);
	c->served = served;
	set_limits(c, &q);
	if (length <= c->limit && (length > SMALL_BYTES || waits))
		admit(c);
	if (length > c->limit && c->refusal == ERR_OK)
		c->refusal = refused_with(c, ERR_BODY_TOO_LARGE);
	/* A client that waits for 100 Continue has sent no body and need not send one. */
	if (c->refusal != ERR_OK && (waits || length > c->limit + DRAIN_LIMIT))
		return connection_refuse(c, refused_with(c, c->refusal));
	return MHD_YES;
}

/* ---- the body ---- */

static void keep_body(struct connection *c, const char *data, size_t n)
{
	if (c->received > c->limit && c->refusal == ERR_OK)
		c->refusal = refused_with(c, ERR_BODY_TOO_LARGE);
	if (c->received > SMALL_BYTES)
		admit(c);
	if (c->refusal == ERR_OK && !is_preflight(c))
		buf_add(&c->body, data, n);
	if (c->refusal == ERR_OK && !connection_hold_body(c, &c->body))
		c->refusal = refused_with(c, ERR_THROTTLED);
	if (c->refusal != ERR_OK) {
		buf_fini(&c->body);
		(void)connection_hold(c, 0);
	}
}

void connection_drop_stream(struct connection *c)
{
	if (c->stream != NULL)
		c->served->streams->free(c->stream);
	c->stream = NULL;
}

/* Gives the body so far to the stream. */
static enum err stream_part(struct connection *c)
{
	const struct rest_streams *streams = c->served->streams;
	enum err e = ERR_OK;
	if (!buf_ok(&c->body))
		return ERR_NO_MEMORY;
	if (c->stream == NULL) {
		const struct request q = connection_request(c);
		e = streams->begin(c->rest->service, &q, &c->stream);
	}
	if (e == ERR_OK)
		e = streams->add(c->stream, buf_span(&c->body));
	buf_clear(&c->body);
	return e;
}

static struct connection *of_job(struct job *job)
{
	return (struct connection *)(void *)((char *)job - offsetof(struct connection, job));
}

static void run_part(struct job *job)
{
	struct connection *c = of_job(job);
	enum err e = stream_part(c);
	if (e != ERR_OK && c->refusal == ERR_OK)
		c->refusal = refused_with(c, e);
	watchdog_phase(&c->watchdog, PHASE_BODY, c->rest->limits.progress_ms);
	c->state = STATE_BODY;
	MHD_resume_connection(c->mhd); /* c may be freed when this returns */
}

/* The client waits meanwhile: MHD reads nothing more. */
static void submit_part(struct connection *c)
{
	watchdog_phase(&c->watchdog, PHASE_WORK, UINT32_MAX);
	c->state = STATE_WORK;
	c->job.run = run_part;
	MHD_suspend_connection(c->mhd);
	if (workers_submit(c->rest->workers, &c->job))
		return;
	c->refusal = refused_with(c, ERR_THROTTLED);
	c->state = STATE_BODY;
	MHD_resume_connection(c->mhd);
}

enum MHD_Result connection_take_body(struct connection *c, const char *data, size_t *n)
{
	c->received += *n;
	if (c->received > c->limit + DRAIN_LIMIT)
		return MHD_NO;
	keep_body(c, data, *n);
	if (c->received - c->progress >= PROGRESS_BYTES) {
		c->progress = c->received;
		watchdog_phase(&c->watchdog, PHASE_BODY, c->rest->limits.progress_ms);
	}
	*n = 0;
	if (c->streams && c->refusal == ERR_OK && c->body.len >= PART_BYTES)
		submit_part(c);
	return MHD_YES;
}

/* ---- the whole ---- */

static void run_job(struct job *job)
{
	struct connection *c = of_job(job);
	enum err e = ERR_OK;
	if (c->stream != NULL)
		e = stream_part(c);
	if (c->stream != NULL && e == ERR_OK)
		e = c->served->streams->end(c->stream);
	struct request q = connection_request(c);
	if (e == ERR_OK)
		connection_handle(c);
	else
		rest_refuse(c->served, c->rest->service, &q, e, &c->response);
	connection_drop_stream(c);
	/* Count it now: MHD may send it much later. */
	connection_hold_response(c);
	c->state = STATE_DONE;
	/* c may be freed when one of these returns */
	if (c->response.wait_ms > 0)
		delayed_add(&c->rest->delayed, c);
	else
		MHD_resume_connection(c->mhd);
}

enum MHD_Result connection_dispatch(struct connection *c)
{
	c->since_us = clock_mono_us();
	struct request q = connection_request(c);
	if (c->refusal != ERR_OK)
		return connection_refuse(c, c->refusal);
	if (!buf_ok(&c->body))
		return connection_refuse(c, ERR_NO_MEMORY);
	if (c->late)
		return connection_refuse(c, ERR_THROTTLED);
	watchdog_phase(&c->watchdog, PHASE_WORK, UINT32_MAX);
	enum request_cost cost = c->served->cost(&q);
	if (cost == COST_BOUNDED) {
		connection_handle(c);
		if (c->response.wait_ms == 0)
			return connection_respond(c);
		c->state = STATE_DONE;
		MHD_suspend_connection(c->mhd);
		delayed_add(&c->rest->delayed, c);
		return MHD_YES;
	}
	c->state = STATE_WORK;
	c->job.run = run_job;
	struct workers *w = cost == COST_LONG ? c->rest->long_workers : c->rest->workers;
	/* Suspend first: the job can end before workers_submit() returns. */
	MHD_suspend_connection(c->mhd);
	if (workers_submit(w, &c->job))
		return MHD_YES;
	c->late = true;
	rest_refuse(c->served, c->rest->service, &q, ERR_THROTTLED, &c->response);
	c->state = STATE_DONE;
	MHD_resume_connection(c->mhd);
	return MHD_YES;
}
