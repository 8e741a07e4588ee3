/* SPDX-License-Identifier: MIT
 * HTTP with libmicrohttpd (MHD): what its users share.
 *
 * Each listening socket has an MHD daemon with one epoll thread per CPU (server.c).  receive.c
 * collects a request.  That thread answers quick requests itself.  For others it suspends the
 * connection and submits a job to the workers, which may block.  respond.c sends the response.
 *
 * Threads: a connection belongs to the MHD thread that serves it; while it is suspended
 * (STATE_WORK), to the worker. */
#ifndef REST_HTTP_CONNECTION_H
#define REST_HTTP_CONNECTION_H

#include "base/workers.h"
#include "rest/core/handle.h"
#include "rest/core/rest_service.h"
#include "rest/http/access_log.h"
#include "rest/http/burst.h"
#include "rest/http/delayed.h"
#include "rest/http/listen.h"
#include "rest/http/watchdog.h"
#include "rest/page/page.h"
#include "rest/rest.h"

#include <microhttpd.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory for the head of a request and the head of the response.  MHD clears it for each request,
 * and answers 414 or 431 if it is too small. */
#define CONNECTION_MEMORY ((size_t)64 << 10)
#define HEADERS_MAX 256
/* More bytes than a service's limit are taken, so that it can refuse the body itself. */
#define BODY_SLACK ((size_t)64 << 10)
/* Larger bodies and responses count against rest_limits.memory_kib.  Larger bodies also need a
 * valid credential.  Smaller ones are always possible. */
#define SMALL_BYTES ((size_t)64 << 10)
/* A part of a body that is taken in parts. */
#define PART_BYTES ((size_t)1 << 20)
/* How many bytes must move in each progress_ms. */
#define PROGRESS_BYTES ((size_t)64 << 10)

struct endpoint {
	struct rest *rest;
	const struct rest_service *served; /* unless a host names another */
	struct listener listener;
	char text[REST_ENDPOINT_TEXT];
	struct MHD_Daemon *daemon;
};

struct rest {
	struct service *service;
	struct rest_limits limits;
	uid_t trusted[REST_TRUSTED_MAX + 2];
	size_t ntrusted;
	bool tls, tls_legacy;
	const char *cert, *key; /* owned by the caller */
	struct workers *workers, *long_workers;
	struct watchdog *watchdog;
	struct delayed delayed;
	atomic_bool stopping;
	atomic_size_t held;      /* bytes, of limits.memory_kib */
	atomic_size_t held_high; /* the maximum since the watchdog's last round */
	struct burst burst;      /* the watchdog's */
	char tenant[sizeof(REST_TENANT_DEFAULT)];
	struct oauth *oauth; /* NULL: no bearer tokens */
	struct endpoint endpoints[LISTENERS_MAX];
	size_t nendpoints;
	char page_link[PAGE_LINK_BYTES];
	struct rest_access_log access_options;
	struct access_log *access_log; /* NULL: none */
	char complaint[200];           /* of MHD, during the start */
	atomic_bool started;
};

enum request_state {
	STATE_NONE, /* between requests */
	STATE_HEAD, /* the request line is complete */
	STATE_BODY,
	STATE_WORK, /* suspended; also while a part of a body is taken */
	STATE_DONE, /* the response is ready to be sent */
	STATE_SENT,
};

/* A connection and its current request. */
struct connection {
	struct watchdog_entry watchdog; /* must be first */
	struct job job;
	struct rest *rest;
	const struct rest_service *of_socket;
	const struct rest_service *served; /* the service of the current request */
	struct MHD_Connection *mhd;
	pthread_t thread; /* MHD's, which serves it */
	struct peer peer;
	uint8_t id[REQUEST_ID_BYTES]; /* random; the last bytes count its requests */

	enum request_state state;
	bool late;  /* the request began while the server was stopping */
	bool close; /* close after the response: the bytes that follow are not a request */
	struct buf target;
	struct header headers[HEADERS_MAX];
	size_t nheaders;
	bool too_many_headers, bad_header;
	const char *method;
	bool admitted;  /* the head allows a large body */
	uint64_t limit; /* bytes of the body */
	struct buf body;
	bool streams; /* the body is taken in parts */
	void *stream; /* of the service; NULL before the first part */
	/* clock_mono_us() when the request was complete; 0: incomplete */
	uint64_t since_us;
	size_t held; /* its part of rest.held */
	/* counts the response of a read while it is made */
	struct buf_memory response_memory;
	bool response_too_large; /* the budget had no room for it */
	/* bytes of the body: all, and at the last extension of the deadline */
	uint64_t received, progress;
	enum err refusal;   /* ERR_OK: none; else response may be set already */
	int refusal_status; /* 0: that of the error */
	struct response response;
	struct access_line *access; /* of the request, for the access log; NULL: there is none */
	/* in rest.delayed */
	struct connection *next_delayed;
	uint64_t resume_us;
};

/* ---- respond.c ---- */

/* Returns the request as far as it was received.  It borrows from the connection. */
struct request connection_request(const struct connection *c);
/* Sets the connection's part of rest_limits.memory_kib to n bytes.  Returns false if that exceeds
 * the limit; the bytes are counted all the same. */
bool connection_hold(struct connection *c, size_t n);
/* Counts the memory of a body; a small one counts as nothing. */
bool connection_hold_body(struct connection *c, const struct buf *body);
/* Calls the service and sets c->response.  The memory of a read's response counts while it is
 * made, and stays counted until its client has read it.  If that exceeds the limit, the response is
 * a refusal. */
void connection_handle(struct connection *c);
/* Counts c->response until its client has read it.  If a read's response exceeds the limit,
 * replaces it by a refusal.  Call it from the thread that has the connection; it may be
 * repeated. */
void connection_hold_response(struct connection *c);
/* Queues c->response.  Returns MHD_NO if the connection must be closed. */
enum MHD_Result connection_respond(struct connection *c);
/* Sends a refusal: the response that is set, or that of this error. */
enum MHD_Result connection_refuse(struct connection *c, enum err e);

/* ---- receive.c ---- */

/* Checks the head before any byte of the body is taken. */
enum MHD_Result connection_begin(struct connection *c, const char *method, const char *version);
/* Takes a part of the body and sets *n to 0, the bytes left. */
enum MHD_Result connection_take_body(struct connection *c, const char *data, size_t *n);
/* Drops what an unfinished request has streamed. */
void connection_drop_stream(struct connection *c);
/* Handles a complete request now, or hands it to the workers. */
enum MHD_Result connection_dispatch(struct connection *c);

/* ---- connection.c: what MHD calls ---- */

/* MHD_AcceptPolicyCallback.  arg is the struct endpoint, here and below. */
enum MHD_Result connection_accept(void *arg, const struct sockaddr *address, socklen_t n);
/* MHD_NotifyConnectionCallback. */
void connection_notify(void *arg, struct MHD_Connection *mhd, void **context,
	enum MHD_ConnectionNotificationCode what);
/* MHD_OPTION_URI_LOG_CALLBACK: the request line is complete.  The result becomes the context of the
 * request. */
void *connection_target(void *arg, const char *target, struct MHD_Connection *mhd);
/* MHD_AccessHandlerCallback. */
enum MHD_Result connection_request_part(void *arg, struct MHD_Connection *mhd, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **context);
/* MHD_RequestCompletedCallback. */
void connection_completed(
	void *arg, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode why);

#endif
