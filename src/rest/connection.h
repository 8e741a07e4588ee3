/* SPDX-License-Identifier: MIT
 * HTTP, by libmicrohttpd: what the files that know it share.  Each listening socket has an
 * MHD daemon with as many epoll threads as there are CPUs (server.c).  A connection's
 * request is collected (intake.c); what can be answered in a moment is answered in that
 * thread, everything else suspends its connection and goes to the workers, whose threads
 * may block; answer.c sends what came of it.
 *
 * Threads: a connection belongs to the MHD thread that serves it, and while it is suspended
 * (STATE_WORK) to the worker. */
#ifndef REST_CONNECTION_H
#define REST_CONNECTION_H

#include "base/workers.h"
#include "model/limits.h"
#include "rest/burst.h"
#include "rest/handle.h"
#include "rest/listen.h"
#include "rest/rest.h"
#include "rest/watchdog.h"

#include <microhttpd.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory for what a request says before its body, and for the head of the answer; MHD
 * clears all of it for each request.  It answers 414 or 431 where it does not do. */
#define CONNECTION_MEMORY ((size_t)64 << 10)
#define HEADERS_MAX 256
/* The multipart lines around the operations of a batch have room too. */
#define BODY_LIMIT ((size_t)LIMIT_BATCH_BYTES + ((size_t)64 << 10))
/* Bodies and answers above this count against rest_limits.memory_kib, and such bodies are
 * taken only from those whose credential is good; less is always there for everybody. */
#define SMALL_BYTES ((size_t)64 << 10)
/* What must have moved in a progress_ms. */
#define PROGRESS_BYTES ((size_t)64 << 10)

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
	bool tls, tls_legacy;
	const char *cert, *key; /* the caller's */
	struct workers *workers, *long_workers;
	struct watchdog *watchdog;
	atomic_bool stopping;
	atomic_size_t held;      /* of limits.memory_kib */
	atomic_size_t held_high; /* the most since the watch last looked */
	struct burst burst;      /* the watch's */
	char tenant[sizeof(REST_TENANT_DEFAULT)];
	struct endpoint endpoints[LISTENERS_MAX];
	size_t nendpoints;
	char complaint[200]; /* MHD's, while it starts */
	atomic_bool started;
};

enum request_state {
	STATE_NONE, /* between requests */
	STATE_HEAD, /* the handler was not called yet */
	STATE_BODY,
	STATE_WORK, /* suspended */
	STATE_DONE, /* the response is there, and to be sent */
	STATE_SENT,
};

/* A connection, and the one request that it is at. */
struct connection {
	struct watchdog_entry watchdog; /* first */
	struct job job;
	struct rest *rest;
	struct MHD_Connection *mhd;
	pthread_t thread; /* the library's, that serves it */
	struct peer peer;
	uint8_t id[REQUEST_ID_BYTES]; /* random, but for a count of its requests */

	enum request_state state;
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

/* ---- answer.c ---- */

/* The request as far as it has come: it points into the connection. */
struct request connection_request(const struct connection *c);
/* The connection holds n bytes of rest_limits.memory_kib from now on; false: that is more
 * than there may be. */
bool connection_hold(struct connection *c, size_t n);
/* As much as this body takes; a small one counts nothing. */
bool connection_hold_body(struct connection *c, const struct buf *body);
/* Counts c->response, which stays in memory for as long as its client takes to read it.  Replaces
 * a reading that is too much by a refusal.  Any thread that has the connection; may be repeated. */
void connection_hold_response(struct connection *c);
/* Sends c->response.  MHD_NO: the connection is to be closed. */
enum MHD_Result connection_respond(struct connection *c);
/* Sends the refusal: the response that is there already, or the one of this error. */
enum MHD_Result connection_refuse(struct connection *c, enum err e);

/* ---- intake.c ---- */

/* The head is there: it is judged before a byte of the body is taken. */
enum MHD_Result connection_begin(struct connection *c, const char *method, const char *version);
/* A piece of the body; *n is what is left of it, 0. */
enum MHD_Result connection_take_body(struct connection *c, const char *data, size_t *n);
/* The request is whole: it is answered now, or handed to the workers. */
enum MHD_Result connection_dispatch(struct connection *c);

/* ---- connection.c: what MHD calls ---- */

/* MHD_AcceptPolicyCallback; arg: the struct endpoint, here and below. */
enum MHD_Result connection_accept(void *arg, const struct sockaddr *address, socklen_t n);
/* MHD_NotifyConnectionCallback */
void connection_notify(void *arg, struct MHD_Connection *mhd, void **context,
	enum MHD_ConnectionNotificationCode what);
/* MHD_OPTION_URI_LOG_CALLBACK: the request line is complete.  The result becomes the
 * request's context. */
void *connection_target(void *arg, const char *target, struct MHD_Connection *mhd);
/* MHD_AccessHandlerCallback */
enum MHD_Result connection_request_part(void *arg, struct MHD_Connection *mhd, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **context);
/* MHD_RequestCompletedCallback */
void connection_completed(
	void *arg, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode why);

#endif
