/* SPDX-License-Identifier: MIT
 * HTTP, by libmicrohttpd: the only file that knows it.  Each listening socket has an MHD
 * daemon with as many epoll threads as there are CPUs.  A request is collected here; what
 * can be answered in a moment is answered in that thread, everything else suspends its
 * connection and goes to the workers, whose threads may block.
 *
 * Surprising:
 * - MHD unescapes and cuts up the target before the handler sees it, so the raw one is
 *   copied where MHD would log it.
 * - An answer can be given before the body came or after all of it, not in between: a body
 *   that is not taken is read on to a bound, and thrown away.
 * - MHD does not read while a connection is suspended, and takes a half-closed one for
 *   closed: a client that sends its request and shuts down its side may get no answer.
 * - MHD_stop_daemon() must not find a suspended connection: workers end first. */
#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/text.h"
#include "base/workers.h"
#include "model/limits.h"
#include "model/service_properties.h"
#include "rest/handle.h"
#include "rest/lane.h"
#include "rest/listen.h"
#include "rest/rest.h"
#include "rest/tls_files.h"
#include "rest/watch.h"
#include "service/heat.h"

#include <microhttpd.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_CONNECTIONS 4096
#define DEFAULT_HEAD_MS 30000
#define DEFAULT_IDLE_MS 120000
#define DEFAULT_PROGRESS_MS 30000
#define DEFAULT_MEMORY_KIB (256 << 10)

/* So that as many durable writers can share one commit. */
#define WORKERS 32
/* For what may take seconds, beside the others: enough to keep disk and CPUs busy. */
#define LONG_WORKERS 8
#define LOOPS_MAX 8
/* Descriptors for the store, commands, the mount. */
#define OTHER_FILES 256
/* Memory for what a request says before its body, and for the head of the answer; MHD
 * clears all of it for each request.  It answers 414 or 431 where it does not do. */
#define CONNECTION_MEMORY ((size_t)64 << 10)
/* Of that, what the head of the answer needs, and what MHD notes down for a header. */
#define ANSWER_MEMORY ((size_t)4 << 10)
#define HEADER_MEMORY 80
#define HEADERS_MAX 256
/* The multipart lines around the operations of a batch have room too. */
#define BODY_LIMIT ((size_t)LIMIT_BATCH_BYTES + ((size_t)64 << 10))
/* Bodies and answers above this count against rest_limits.memory_kib, and such bodies are
 * taken only from those whose credential is good; less is always there for everybody. */
#define SMALL_BYTES ((size_t)64 << 10)
/* How much more is read so that the client gets the refusal and not a reset. */
#define DRAIN_LIMIT ((uint64_t)16 << 20)
/* What must have moved in a progress_ms. */
#define PROGRESS_BYTES ((size_t)64 << 10)
/* What a connection may keep for its next request. */
#define KEPT_BYTES ((size_t)16 << 10)
/* rest_stop(): how long clients may take to send or to read what was begun. */
#define STOP_MS 3000
#define STOP_ROUND_US 2000

struct endpoint {
	struct rest *rest;
	struct listener listener;
	struct MHD_Daemon *daemon;
};

struct rest {
	struct service *service;
	struct rest_limits limits;
	uid_t trusted[REST_TRUSTED_MAX + 2];
	size_t ntrusted;
	bool tls;
	struct workers *workers, *long_workers;
	struct watch *watch;
	atomic_bool stopping;
	atomic_size_t held; /* of limits.memory_kib */
	struct endpoint endpoints[LISTENERS_MAX];
	size_t nendpoints;
	char complaint[200]; /* MHD's, while it starts */
	atomic_bool started;
};

enum stage {
	STAGE_NONE, /* between requests */
	STAGE_HEAD, /* the handler was not called yet */
	STAGE_BODY,
	STAGE_WORK, /* suspended */
	STAGE_DONE, /* the response is there, and to be sent */
	STAGE_SENT,
};

/* A connection, and the one request that it is at. */
struct connection {
	struct watched watched; /* first */
	struct job job;
	struct rest *rest;
	struct MHD_Connection *mhd;
	struct peer peer;

	enum stage stage;
	bool late;  /* came when the server was being stopped already */
	bool close; /* after the answer: what follows on the wire is not a request */
	struct buf target;
	struct header headers[HEADERS_MAX];
	size_t nheaders;
	bool too_many_headers, bad_header;
	const char *method;
	bool admitted; /* the head was found good enough for a large body */
	struct buf body;
	uint64_t since_us;           /* when it had come whole; 0: not yet */
	size_t held;                 /* its part of rest.held */
	uint64_t received, progress; /* bytes of the body; when the time was last extended */
	enum err refusal;            /* ERR_OK: to be handled; the response may be there already */
	int refusal_status;          /* 0: the error's own */
	struct response response;
};

/* The body of an answer that takes several writes, to see whether the client reads it. */
struct outgoing {
	struct connection *c;
	char *data;
	size_t n;
};

/* ---- memory ---- */

/* The connection holds that much from now on; false: that is more than there may be. */
static bool hold(struct connection *c, size_t n)
{
	size_t before = c->held;
	if (n == before)
		return true;
	c->held = n;
	/* Modulo its size: the difference may be negative. */
	size_t all = atomic_fetch_add(&c->rest->held, n - before) + (n - before);
	return n < before || all <= (size_t)c->rest->limits.memory_kib << 10;
}

static bool hold_buf(struct connection *c, const struct buf *b)
{
	return hold(c, b->len > SMALL_BYTES ? b->cap : 0);
}

/* ---- answers ---- */

static struct request request_of(const struct connection *c)
{
	return (struct request){
		.method = c->method != NULL ? span_of(c->method) : SPAN_LIT(""),
		.target = buf_span(&c->target),
		.headers = c->headers,
		.nheaders = c->nheaders,
		.body = buf_span(&c->body),
		.peer = &c->peer,
		.since_us = c->since_us,
	};
}

static ssize_t read_outgoing(void *arg, uint64_t at, char *buf, size_t max)
{
	struct outgoing *o = arg;
	if (at >= o->n)
		return MHD_CONTENT_READER_END_OF_STREAM;
	size_t n = o->n - (size_t)at < max ? o->n - (size_t)at : max;
	memcpy(buf, o->data + at, n);
	watch_phase(&o->c->watched, PHASE_REPLY, o->c->rest->limits.progress_ms);
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

static bool may_have_body(int status)
{
	return status != MHD_HTTP_NO_CONTENT && status != MHD_HTTP_NOT_MODIFIED;
}

/* The body's memory moves into the result. */
static struct MHD_Response *response_with_body(struct connection *c)
{
	static char none[] = "";
	struct response *r = &c->response;
	struct MHD_Response *ret;
	if (r->body.len == 0 || !may_have_body(r->status))
		return MHD_create_response_from_buffer(0, none, MHD_RESPMEM_PERSISTENT);
	if (r->body.len > PROGRESS_BYTES)
		ret = large_response(c);
	else
		ret = MHD_create_response_from_buffer_with_free_callback(
			r->body.len, r->body.data, free);
	if (ret != NULL)
		r->body = BUF_INIT(r->body.limit);
	return ret;
}

/* The library writes these itself, from what is true. */
static bool is_left_out(const struct response *r, const char *name)
{
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
	/* The service sends it with 204 as well, and clients look for it. */
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

/* Without the query, which may hold a signature. */
static void log_failure(const struct connection *c)
{
	const struct response *r = &c->response;
	const char *code = response_header_get(r, "x-ms-error-code");
	const char *id = response_header_get(r, "x-ms-request-id");
	if (r->status < 500 || r->status == MHD_HTTP_NOT_IMPLEMENTED || c->late)
		return;
	/* A throttle was asked for, and refuses a great deal. */
	if (r->status == MHD_HTTP_SERVICE_UNAVAILABLE &&
		heat_target(service_heat(c->rest->service)) != 0)
		return;
	size_t n = c->target.len > 0 ? strcspn(c->target.data, "?") : 0;
	log_warning("REST: %.16s %.*s: %d %s, request %s", c->method, n < 300 ? (int)n : 300,
		n > 0 ? c->target.data : "", r->status, code != NULL ? code : "-",
		id != NULL ? id : "-");
}

/* Whether the answer tells what is there, not what was done: the latter must not become an
 * error.  Of a batch the first part tells. */
static bool is_a_reading(const struct response *r)
{
	static const char line[] = "\r\n\r\nHTTP/1.1 ";
	size_t n = r->body.len < 4096 ? r->body.len : 4096, len = sizeof(line) - 1;
	if (r->status != MHD_HTTP_ACCEPTED)
		return r->status == MHD_HTTP_OK;
	const char *at = memmem(r->body.data, n, line, len);
	return at != NULL && span_starts(span_make(at + len, n - len), SPAN_LIT("200"));
}

/* An answer stays in memory for as long as its client takes to read it. */
static void hold_response(struct connection *c)
{
	struct response *r = &c->response;
	buf_fini(&c->body);
	if (hold_buf(c, &r->body) || !is_a_reading(r))
		return;
	struct request q = request_of(c);
	response_fini(r);
	(void)hold(c, 0);
	rest_refuse(NULL, &q, ERR_THROTTLED, r);
}

static enum MHD_Result send_response(struct connection *c)
{
	hold_response(c);
	log_failure(c);
	c->stage = STAGE_SENT;
	/* Without a status, memory was not even enough for an error. */
	struct MHD_Response *m = c->response.status != 0 ? response_with_body(c) : NULL;
	if (m == NULL || !add_headers(c, m)) {
		log_warning("REST: no memory for an answer");
		if (m != NULL)
			MHD_destroy_response(m);
		watch_phase(&c->watched, PHASE_REPLY, 0);
		return MHD_NO;
	}
	/* A head with thousands of parameters leaves the library no room for an answer, and it
	 * does not hang up by itself. */
	enum MHD_Result ret = MHD_queue_response(c->mhd, (unsigned)c->response.status, m);
	watch_phase(&c->watched, PHASE_REPLY, ret == MHD_YES ? c->rest->limits.progress_ms : 0);
	MHD_destroy_response(m);
	return ret;
}

static enum MHD_Result refuse(struct connection *c, enum err e)
{
	struct request q = request_of(c);
	if (c->response.status == 0)
		rest_refuse(c->rest->service, &q, e, &c->response);
	if (c->refusal_status != 0)
		c->response.status = c->refusal_status;
	return send_response(c);
}

/* ---- work ---- */

static void run_job(struct job *job)
{
	struct connection *c =
		(struct connection *)(void *)((char *)job - offsetof(struct connection, job));
	struct request q = request_of(c);
	rest_handle(c->rest->service, &q, &c->response);
	c->stage = STAGE_DONE;
	MHD_resume_connection(c->mhd); /* it may be gone when this returns */
}

static enum MHD_Result dispatch(struct connection *c)
{
	c->since_us = clock_mono_us();
	struct request q = request_of(c);
	if (c->refusal != ERR_OK)
		return refuse(c, c->refusal);
	if (!buf_ok(&c->body))
		return refuse(c, ERR_NO_MEMORY);
	if (c->late)
		return refuse(c, ERR_THROTTLED);
	watch_phase(&c->watched, PHASE_WORK, UINT32_MAX);
	if (rest_is_quick(&q)) {
		rest_handle(c->rest->service, &q, &c->response);
		return send_response(c);
	}
	c->stage = STAGE_WORK;
	c->job.run = run_job;
	struct workers *w = request_may_be_long(&q) ? c->rest->long_workers : c->rest->workers;
	/* In this order: the job may be done before submitting it returns. */
	MHD_suspend_connection(c->mhd);
	if (workers_submit(w, &c->job))
		return MHD_YES;
	c->late = true;
	rest_refuse(c->rest->service, &q, ERR_THROTTLED, &c->response);
	c->stage = STAGE_DONE;
	MHD_resume_connection(c->mhd);
	return MHD_YES;
}

/* ---- the head of a request ---- */

/* Otherwise the same bytes would be another header, or none, for who is in front of this
 * server: "Content-Length : 5". */
static bool is_sound(const struct header *h)
{
	return cors_is_header_name(h->name) &&
		(h->value.n == 0 || memchr(h->value.p, '\0', h->value.n) == NULL);
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

/* Whether the head leaves room for that of the answer in MHD's memory. */
static bool head_fits(const struct connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	size_t n = info != NULL ? info->header_size : CONNECTION_MEMORY;
	return !c->too_many_headers &&
		n + (c->nheaders + 1) * HEADER_MEMORY + ANSWER_MEMORY <= CONNECTION_MEMORY;
}

/* What two programs could take for different hosts, headers or lengths is refused, so that
 * nothing in front of this server can be made to see another request than it does.  Not
 * seen here is a NUL in a value: the library has cut it there. */
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

static bool is_preflight(const struct connection *c)
{
	return strcmp(c->method, MHD_HTTP_METHOD_OPTIONS) == 0;
}

/* Before memory is taken for more than a little.  A preflight's body is for nobody. */
static void admit(struct connection *c)
{
	if (c->admitted || is_preflight(c) || c->refusal != ERR_OK)
		return;
	struct request q = request_of(c);
	q.body = SPAN_LIT("");
	c->refusal = rest_admit(c->rest->service, &q, &c->response);
	c->admitted = c->refusal == ERR_OK;
}

static enum MHD_Result begin(struct connection *c, const char *method)
{
	uint64_t length;
	c->stage = STAGE_BODY;
	c->method = method;
	c->nheaders = 0;
	c->since_us = 0;
	c->too_many_headers = c->bad_header = c->admitted = false;
	(void)MHD_get_connection_values_n(c->mhd, MHD_HEADER_KIND, keep_header, c);
	struct request q = request_of(c);
	if (!head_fits(c)) {
		c->refusal_status = MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE;
		c->close = true;
		return refuse(c, ERR_HEADER_INVALID);
	}
	if (!buf_ok(&c->target))
		return refuse(c, refused_with(c, ERR_NO_MEMORY));
	enum err e = check_framing(c, &q, &length);
	if (e != ERR_OK)
		return refuse(c, e);
	watch_phase(&c->watched, PHASE_BODY, c->rest->limits.progress_ms);
	bool waits = request_header_count(&q, MHD_HTTP_HEADER_EXPECT) > 0;
	if (length > BODY_LIMIT)
		c->refusal = refused_with(c, ERR_BODY_TOO_LARGE);
	else if (length > SMALL_BYTES || waits)
		admit(c);
	/* Who waits for 100 Continue has sent nothing, and needs not to. */
	if (c->refusal != ERR_OK && (waits || length > BODY_LIMIT + DRAIN_LIMIT))
		return refuse(c, refused_with(c, c->refusal));
	return MHD_YES;
}

static void keep_body(struct connection *c, const char *data, size_t n)
{
	if (c->received > BODY_LIMIT && c->refusal == ERR_OK)
		c->refusal = refused_with(c, ERR_BODY_TOO_LARGE);
	if (c->received > SMALL_BYTES)
		admit(c);
	if (c->refusal == ERR_OK && !is_preflight(c))
		buf_add(&c->body, data, n);
	if (c->refusal == ERR_OK && !hold_buf(c, &c->body))
		c->refusal = refused_with(c, ERR_THROTTLED);
	if (c->refusal != ERR_OK) {
		buf_fini(&c->body);
		(void)hold(c, 0);
	}
}

static enum MHD_Result take_body(struct connection *c, const char *data, size_t *n)
{
	c->received += *n;
	if (c->received > BODY_LIMIT + DRAIN_LIMIT)
		return MHD_NO;
	keep_body(c, data, *n);
	if (c->received - c->progress >= PROGRESS_BYTES) {
		c->progress = c->received;
		watch_phase(&c->watched, PHASE_BODY, c->rest->limits.progress_ms);
	}
	*n = 0;
	return MHD_YES;
}

/* ---- what MHD calls ---- */

static enum MHD_Result on_request(void *arg, struct MHD_Connection *mhd, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **context)
{
	struct connection *c = *context;
	(void)arg;
	(void)mhd;
	(void)url;
	(void)version;
	if (c == NULL)
		return MHD_NO;
	switch (c->stage) {
	case STAGE_HEAD:
		return begin(c, method);
	case STAGE_BODY:
		return *size > 0 ? take_body(c, data, size) : dispatch(c);
	case STAGE_DONE:
		return send_response(c);
	case STAGE_SENT:
	case STAGE_WORK:
	case STAGE_NONE:
		break;
	}
	return MHD_NO;
}

static struct connection *connection_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info != NULL ? info->socket_context : NULL;
}

/* The library would parse the query into the connection's memory, and with thousands of
 * parameters has none left for an answer: then it neither answers nor hangs up.  The text is
 * in its own buffer, and ends for it at the first NUL. */
static void hide_query(const char *target)
{
	union {
		const char *given;
		char *own;
	} text = { target };
	char *mark = target != NULL ? strchr(text.own, '?') : NULL;
	if (mark != NULL && mark[1] != '\0')
		mark[1] = '\0';
}

/* The request line is complete.  The result becomes the request's context. */
static void *on_target(void *arg, const char *target, struct MHD_Connection *mhd)
{
	struct connection *c = connection_of(mhd);
	(void)arg;
	if (c == NULL)
		return NULL;
	buf_clear(&c->target);
	buf_add_str(&c->target, target != NULL ? target : "");
	hide_query(target);
	c->stage = STAGE_HEAD;
	c->late = atomic_load(&c->rest->stopping);
	c->close = false;
	c->received = c->progress = 0;
	c->refusal = ERR_OK;
	c->refusal_status = 0;
	c->method = NULL;
	c->nheaders = 0;
	watch_phase(&c->watched, PHASE_HEAD, c->rest->limits.head_ms);
	return c;
}

/* Targets are taken raw. */
static size_t leave_escaped(void *arg, struct MHD_Connection *mhd, char *text)
{
	(void)arg;
	(void)mhd;
	return strlen(text);
}

static void forget(struct buf *b)
{
	if (b->cap > KEPT_BYTES)
		buf_fini(b);
	else
		buf_clear(b);
}

static void on_completed(
	void *arg, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode why)
{
	struct connection *c = *context;
	(void)arg;
	(void)mhd;
	(void)why;
	if (c == NULL)
		return;
	c->stage = STAGE_NONE;
	forget(&c->target);
	forget(&c->body);
	(void)hold(c, 0);
	response_fini(&c->response);
	response_init(&c->response);
	*context = NULL;
	watch_phase(&c->watched, PHASE_IDLE, c->rest->limits.idle_ms);
}

static void find_ip(struct connection *c, const struct sockaddr *address)
{
	static const char mapped[] = "::ffff:";
	if (address->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const void *)address;
		(void)inet_ntop(AF_INET, &v4->sin_addr, c->peer.ip, sizeof(c->peer.ip));
	} else if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const void *)address;
		(void)inet_ntop(AF_INET6, &v6->sin6_addr, c->peer.ip, sizeof(c->peer.ip));
		if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
			memmove(c->peer.ip, c->peer.ip + sizeof(mapped) - 1,
				strlen(c->peer.ip) - (sizeof(mapped) - 1) + 1);
	}
}

static bool is_trusted(const struct rest *r, int fd)
{
	struct ucred who;
	socklen_t n = sizeof(who);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) != 0)
		return false;
	for (size_t i = 0; i < r->ntrusted; i++)
		if (r->trusted[i] == who.uid)
			return true;
	return false;
}

static struct connection *connection_new(struct endpoint *e, struct MHD_Connection *mhd)
{
	struct connection *c = malloc(sizeof(*c));
	if (c == NULL)
		return NULL;
	memset(c, 0, offsetof(struct connection, headers));
	memset(&c->nheaders, 0, sizeof(*c) - offsetof(struct connection, nheaders));
	c->rest = e->rest;
	c->mhd = mhd;
	c->watched.fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	c->target = BUF_INIT(CONNECTION_MEMORY);
	c->body = BUF_INIT(BODY_LIMIT);
	response_init(&c->response);
	c->peer.is_unix = e->listener.is_unix;
	c->peer.tls = e->rest->tls && !e->listener.is_unix;
	if (c->peer.is_unix)
		c->peer.trusted = is_trusted(e->rest, c->watched.fd);
	else
		find_ip(c,
			MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
				->client_addr);
	return c;
}

static void connection_free(struct connection *c)
{
	buf_fini(&c->target);
	buf_fini(&c->body);
	(void)hold(c, 0);
	response_fini(&c->response);
	free(c);
}

/* MHD closes the descriptor after the second of these calls. */
static void on_connection(void *arg, struct MHD_Connection *mhd, void **context,
	enum MHD_ConnectionNotificationCode what)
{
	struct endpoint *e = arg;
	struct connection *c = *context;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		c = connection_new(e, mhd);
		*context = c; /* NULL: its requests are not answered */
		if (c != NULL)
			watch_add(e->rest->watch, &c->watched, e->rest->limits.head_ms);
	} else if (c != NULL) {
		watch_remove(e->rest->watch, &c->watched);
		connection_free(c);
		*context = NULL;
	}
}

static enum MHD_Result on_accept(void *arg, const struct sockaddr *address, socklen_t n)
{
	struct endpoint *e = arg;
	(void)address;
	(void)n;
	return atomic_load(&e->rest->stopping) ? MHD_NO : MHD_YES;
}

static void on_message(void *arg, const char *fmt, va_list args) PRINTF_LIKE(2, 0);
static void on_message(void *arg, const char *fmt, va_list args)
{
	struct rest *r = arg;
	char text[sizeof(r->complaint)];
	if (atomic_load(&r->started)) {
		(void)vsnprintf(text, sizeof(text), fmt, args);
		log_debug("REST: %s", text);
		return;
	}
	/* The first one is the cause. */
	if (r->complaint[0] != '\0')
		return;
	(void)vsnprintf(r->complaint, sizeof(r->complaint), fmt, args);
	r->complaint[strcspn(r->complaint, "\n")] = '\0';
}

/* ---- start and stop ---- */

static unsigned loops(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	return n < 1 ? 1 : n > LOOPS_MAX ? LOOPS_MAX : (unsigned)n;
}

/* What may be open at once, less what others need. */
static uint32_t allowed_connections(uint32_t wanted)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) != 0)
		return wanted;
	rlim_t need = (rlim_t)wanted + OTHER_FILES;
	if (r.rlim_cur < need && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max < need ? r.rlim_max : need;
		(void)setrlimit(RLIMIT_NOFILE, &r);
		(void)getrlimit(RLIMIT_NOFILE, &r);
	}
	if (r.rlim_cur >= need)
		return wanted;
	uint32_t left = (uint32_t)(r.rlim_cur > 2 * OTHER_FILES ? r.rlim_cur - OTHER_FILES
								: r.rlim_cur / 2);
	log_warning("REST: at most %u connections, as only %llu files may be open (ulimit -n)",
		left, (unsigned long long)r.rlim_cur);
	return left;
}

static void set_limits(struct rest *r, const struct rest_limits *given)
{
	struct rest_limits *l = &r->limits;
	*l = *given;
	l->connections =
		allowed_connections(l->connections != 0 ? l->connections : DEFAULT_CONNECTIONS);
	l->head_ms = l->head_ms != 0 ? l->head_ms : DEFAULT_HEAD_MS;
	l->idle_ms = l->idle_ms != 0 ? l->idle_ms : DEFAULT_IDLE_MS;
	l->progress_ms = l->progress_ms != 0 ? l->progress_ms : DEFAULT_PROGRESS_MS;
	l->memory_kib = l->memory_kib != 0 ? l->memory_kib : DEFAULT_MEMORY_KIB;
}

static void set_trusted(struct rest *r, const struct rest_options *o)
{
	if (o->untrusting)
		return;
	r->trusted[r->ntrusted++] = 0;
	r->trusted[r->ntrusted++] = geteuid();
	for (size_t i = 0; i < o->ntrusted && i < REST_TRUSTED_MAX; i++)
		r->trusted[r->ntrusted++] = o->trusted[i];
}

static enum err open_listeners(
	struct rest *r, const struct rest_options *o, struct err_detail *detail)
{
	struct listener list[LISTENERS_MAX];
	size_t n = 0;
	enum err e = ERR_OK;
	for (size_t i = 0; i < o->nendpoints && i < REST_ENDPOINTS_MAX && e == ERR_OK; i++)
		e = listen_at(o->endpoints[i], r->tls, o->ntrusted > 0, list, &n, detail);
	for (size_t i = 0; i < n; i++)
		r->endpoints[i] = (struct endpoint){ .rest = r, .listener = list[i] };
	r->nendpoints = n;
	return e;
}

static enum err start_daemon(
	struct rest *r, struct endpoint *e, const struct tls_files *tls, struct err_detail *detail)
{
	bool with_tls = r->tls && !e->listener.is_unix;
	unsigned threads = loops();
	unsigned connections = r->limits.connections / (unsigned)r->nendpoints;
	if (connections < threads)
		connections = threads; /* each thread has its part of them */
	/* Its own descriptor: MHD closes it, on failure only sometimes. */
	int fd = fcntl(e->listener.fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return err_set(
			detail, ERR_IO, "'%s': %s", e->listener.text, strerrordesc_np(errno));
	struct MHD_OptionItem options[] = {
		{ MHD_OPTION_LISTEN_SOCKET, fd, NULL },
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)CONNECTION_MEMORY, NULL },
		{ MHD_OPTION_CONNECTION_LIMIT, connections, NULL },
		{ MHD_OPTION_CONNECTION_TIMEOUT, 0, NULL }, /* rest/watch.h */
		{ MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, NULL },
		{ MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, e },
		{ MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)on_target, NULL },
		{ MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)leave_escaped, NULL },
		{ MHD_OPTION_END, 0, NULL }, /* threads */
		{ MHD_OPTION_END, 0, NULL }, /* TLS */
		{ MHD_OPTION_END, 0, NULL },
		{ MHD_OPTION_END, 0, NULL },
		{ MHD_OPTION_END, 0, NULL },
	};
	static char tls_versions[] = "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1";
	size_t n = 8;
	if (threads > 1)
		options[n++] =
			(struct MHD_OptionItem){ MHD_OPTION_THREAD_POOL_SIZE, threads, NULL };
	if (with_tls) {
		options[n++] =
			(struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_CERT, 0, tls->cert.data };
		options[n++] =
			(struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_KEY, 0, tls->key.data };
		options[n++] =
			(struct MHD_OptionItem){ MHD_OPTION_HTTPS_PRIORITIES, 0, tls_versions };
	}
	r->complaint[0] = '\0';
	/* The logger first: other options complain through it. */
	e->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
			MHD_USE_ERROR_LOG | (with_tls ? MHD_USE_TLS : 0),
		0, on_accept, e, on_request, e, MHD_OPTION_EXTERNAL_LOGGER, on_message, r,
		MHD_OPTION_ARRAY, options, MHD_OPTION_END);
	if (e->daemon != NULL)
		return ERR_OK;
	return err_set(detail, with_tls ? ERR_INVALID_INPUT : ERR_IO, "'%s': cannot serve%s: %s",
		e->listener.text,
		with_tls ? " with this certificate and key (are they a pair?)" : "",
		r->complaint[0] != '\0' ? r->complaint : "no reason given");
}

static enum err start(struct rest *r, const struct rest_options *o, struct err_detail *detail)
{
	struct tls_files tls = { 0 };
	enum err e = ERR_OK;
	if (o->nendpoints == 0 || o->nendpoints > REST_ENDPOINTS_MAX)
		return err_set(detail, ERR_INVALID_INPUT, "there can be 1 to %d endpoints",
			REST_ENDPOINTS_MAX);
	if ((o->cert == NULL) != (o->key == NULL))
		return err_set(
			detail, ERR_INVALID_INPUT, "TLS needs both a certificate and its key");
	r->tls = o->cert != NULL;
	if (r->tls)
		e = tls_files_read(o->cert, o->key, &tls, detail);
	if (e == ERR_OK)
		e = open_listeners(r, o, detail);
	if (e == ERR_OK)
		e = watch_start(r->limits.connections - r->limits.connections / 8, &r->watch);
	if (e == ERR_OK)
		e = workers_start(WORKERS, &r->workers);
	if (e == ERR_OK)
		e = workers_start(LONG_WORKERS, &r->long_workers);
	for (size_t i = 0; i < r->nendpoints && e == ERR_OK; i++)
		e = start_daemon(r, &r->endpoints[i], &tls, detail);
	tls_files_fini(&tls);
	return e;
}

enum err rest_endpoint_check(const char *endpoint, struct err_detail *detail)
{
	return endpoint_check(endpoint, detail);
}

enum err rest_start(struct service *service, const struct rest_options *options, struct rest **ret,
	struct err_detail *detail)
{
	struct rest *r = calloc(1, sizeof(*r));
	if (r == NULL)
		return ERR_NO_MEMORY;
	r->service = service;
	rest_name_operations(service);
	set_limits(r, &options->limits);
	set_trusted(r, options);
	enum err e = start(r, options, detail);
	if (e != ERR_OK) {
		rest_stop(r);
		return e;
	}
	atomic_store(&r->started, true);
	*ret = r;
	return ERR_OK;
}

const char *rest_endpoint(const struct rest *r, size_t i)
{
	return i < r->nendpoints ? r->endpoints[i].listener.text : NULL;
}

/* Until what was begun is answered; a client that is too slow is given up. */
static void finish_requests(struct rest *r)
{
	size_t at[PHASES];
	uint64_t end = clock_mono_us() + STOP_MS * 1000;
	for (;;) {
		watch_dismiss_idle(r->watch);
		watch_count(r->watch, at);
		if (at[PHASE_HEAD] + at[PHASE_BODY] + at[PHASE_WORK] + at[PHASE_REPLY] == 0)
			return;
		uint64_t now = clock_mono_us();
		/* Who is being worked for has the whole time for its answer then. */
		if (at[PHASE_WORK] > 0)
			end = now + STOP_MS * 1000;
		if (now >= end)
			break;
		(void)usleep(STOP_ROUND_US);
	}
	watch_hang_up(r->watch);
}

void rest_stop(struct rest *r)
{
	if (r == NULL)
		return;
	atomic_store(&r->stopping, true);
	if (r->watch != NULL)
		finish_requests(r);
	if (r->workers != NULL)
		workers_stop(r->workers);
	if (r->long_workers != NULL)
		workers_stop(r->long_workers);
	for (size_t i = 0; i < r->nendpoints; i++) {
		MHD_stop_daemon(r->endpoints[i].daemon); /* NULL is fine */
		listener_close(&r->endpoints[i].listener);
	}
	workers_free(r->workers);
	workers_free(r->long_workers);
	watch_stop(r->watch);
	free(r);
}
