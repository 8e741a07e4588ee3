/* SPDX-License-Identifier: MIT
 * MHD has no callback for errors that it finds itself, but it logs each one before it responds.
 * The message does not name the connection; current_socket() does.
 *
 * One thread serves a connection all its life, so no other thread closes it meanwhile. */
#include "rest/http/malformed.h"

#include "rest/http/current_socket.h"
#include "rest/http/tls.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The start of the message in libmicrohttpd 0.9.75 to 1.0.1. */
#define ERROR_MESSAGE "Error processing request"
#define DRAIN_BYTES ((size_t)1 << 20)

/* ---- the response ---- */

static void add_head(const struct response *r, struct buf *out)
{
	char date[64];
	struct tm tm;
	time_t now = time(NULL);
	const char *name, *value;
	(void)strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
	buf_addf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\nConnection: close\r\nContent-Length: %zu\r\n",
		r->status, http_reason(r->status), date, r->body.len);
	for (size_t at = 0; response_header_next(r, &at, &name, &value);)
		buf_addf(out, "%s: %s\r\n", name, value);
	buf_add_str(out, "\r\n");
}

/* Closing a socket with unread bytes sends a reset, which can overtake the response. */
static void drain(int fd)
{
	char waste[4096];
	size_t all = 0;
	ssize_t n = 1;
	while (n > 0 && all < DRAIN_BYTES) {
		n = syscall(SYS_recvfrom, fd, waste, sizeof(waste), MSG_DONTWAIT, NULL, NULL);
		all += n > 0 ? (size_t)n : 0;
	}
}

/* The socket has room: everything before was sent, and no response has begun. */
static void send_response(struct connection *c, struct span answer)
{
	int fd = c->watchdog.fd;
	const union MHD_ConnectionInfo *tls = c->peer.tls
		? MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION)
		: NULL;
	if (tls != NULL)
		tls_send(tls->tls_session, answer);
	else
		(void)send(fd, answer.p, answer.n, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
	drain(fd);
	(void)shutdown(fd, SHUT_RDWR);
}

static enum err error_of(unsigned status)
{
	return status == MHD_HTTP_CONTENT_TOO_LARGE ? ERR_BODY_TOO_LARGE : ERR_HEADER_INVALID;
}

static void answer(struct connection *c, unsigned status)
{
	struct buf out = BUF_INIT(RESPONSE_HEADERS_LIMIT);
	struct response *r = &c->response;
	/* the head is incomplete: these fields belong to an earlier request */
	if (c->state != STATE_BODY) {
		c->method = NULL;
		c->nheaders = 0;
	}
	struct request q = connection_request(c);
	response_clear(r);
	rest_refuse(c->served, c->rest->service, &q, error_of(status), r);
	/* MHD's status for a chunk line that is too long. */
	if (status == MHD_HTTP_INTERNAL_SERVER_ERROR)
		status = MHD_HTTP_BAD_REQUEST;
	r->status = (int)status;
	add_head(r, &out);
	if (!span_is(q.method, "HEAD"))
		buf_add_span(&out, buf_span(&r->body));
	if (buf_ok(&out))
		send_response(c, buf_span(&out));
	buf_fini(&out);
	buf_fini(&c->body);
	(void)connection_hold(c, 0);
	c->state = STATE_SENT;
	watchdog_phase(&c->watchdog, PHASE_REPLY, 0);
}

void malformed_on_message(struct rest *r, const char *fmt, va_list args)
{
	if (strncmp(fmt, ERROR_MESSAGE, strlen(ERROR_MESSAGE)) != 0)
		return;
	va_list copy;
	va_copy(copy, args);
	unsigned status = va_arg(copy, unsigned);
	va_end(copy);
	struct connection *c =
		(struct connection *)(void *)watchdog_find(r->watchdog, current_socket());
	bool before_response = c != NULL && c->state <= STATE_BODY;
	if (before_response && pthread_equal(c->thread, pthread_self()) && status >= 400)
		answer(c, status);
}

/* ---- the head in MHD's memory ---- */

/* MHD replaces the line ends in its buffer by NULs and points into it.  A line that does not end in
 * CR LF changes the distances. */
#if MHD_VERSION < 0x01000000
bool head_is_well_formed(const struct connection *c, const char *method, const char *version)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	if (info == NULL)
		return false;
	const char *line_end = version + strlen(version);
	for (size_t i = 0; i < c->nheaders; i++) {
		const struct header *h = &c->headers[i];
		if (h->name.p != line_end + 2)
			return false;
		line_end = h->value.p + h->value.n;
	}
	return method + info->header_size == line_end + 4;
}
#else
/* This version has an option for it (server.c). */
bool head_is_well_formed(const struct connection *c, const char *method, const char *version)
{
	(void)c;
	(void)method;
	(void)version;
	return true;
}
#endif
