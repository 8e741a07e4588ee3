/* SPDX-License-Identifier: MIT
 * The callbacks of MHD for connections and requests.
 *
 * - MHD decodes and splits the target before it calls the handler.  So the raw target is copied in
 *   the callback for logging.
 * - MHD does not read while a connection is suspended, and treats a half-closed one as closed.  A
 *   client that shuts down its side after the request may get no response. */
#include "rest/http/connection.h"

#include "base/crypto.h"
#include "rest/http/current_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* How much memory of each buffer a connection keeps for its next request. */
#define KEPT_BYTES ((size_t)16 << 10)

/* Then another thread has the connection. */
static bool is_suspended(const struct connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CONNECTION_SUSPENDED);
	return info != NULL && info->suspended == MHD_YES;
}

enum MHD_Result connection_request_part(void *arg, struct MHD_Connection *mhd, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **context)
{
	struct connection *c = *context;
	(void)arg;
	(void)mhd;
	(void)url;
	if (c == NULL)
		return MHD_NO;
	if (is_suspended(c)) /* MHD has another chunk at hand, which it keeps */
		return MHD_YES;
	current_socket_set(c->watchdog.fd);
	switch (c->state) {
	case STATE_HEAD:
		return connection_begin(c, method, version);
	case STATE_BODY:
		return *size > 0 ? connection_take_body(c, data, size) : connection_dispatch(c);
	case STATE_DONE:
		return connection_respond(c);
	case STATE_SENT:
	case STATE_WORK:
	case STATE_NONE:
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

/* Hides the query from MHD, which would parse it into the connection's memory.  With thousands of
 * parameters it would have no memory for a response, and would neither answer nor close.  MHD's
 * text is in its own buffer and ends at the first NUL. */
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

static bool takes_requests(const struct rest *r, const struct rest_service *served)
{
	return served->while_stopping || !atomic_load(&r->stopping);
}

/* Counts in the last four bytes of the id.  The other bytes differ between connections. */
static void count_request(struct connection *c)
{
	for (size_t i = sizeof(c->id); i-- > sizeof(c->id) - 4;)
		if (++c->id[i] != 0)
			break;
}

void *connection_target(void *arg, const char *target, struct MHD_Connection *mhd)
{
	struct connection *c = connection_of(mhd);
	(void)arg;
	if (c == NULL)
		return NULL;
	current_socket_set(c->watchdog.fd);
	count_request(c);
	buf_clear(&c->target);
	buf_add_str(&c->target, target != NULL ? target : "");
	hide_query(target);
	c->state = STATE_HEAD;
	c->served = c->of_socket;
	c->late = !takes_requests(c->rest, c->of_socket);
	c->close = false;
	c->received = c->progress = 0;
	c->refusal = ERR_OK;
	c->refusal_status = 0;
	c->method = NULL;
	c->nheaders = 0;
	access_log_begin(c->rest->access_log, &c->access);
	watchdog_phase(&c->watchdog, PHASE_HEAD, c->rest->limits.head_ms);
	return c;
}

static void forget(struct buf *b)
{
	if (b->cap > KEPT_BYTES)
		buf_fini(b);
	else
		buf_clear(b);
}

void connection_completed(
	void *arg, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode why)
{
	struct connection *c = *context;
	(void)arg;
	(void)mhd;
	if (c == NULL)
		return;
	current_socket_set(c->watchdog.fd);
	c->state = STATE_NONE;
	if (c->access != NULL)
		access_log_end(
			c->rest->access_log, c->access, why == MHD_REQUEST_TERMINATED_COMPLETED_OK);
	connection_drop_stream(c);
	forget(&c->target);
	forget(&c->body);
	(void)connection_hold(c, 0);
	response_fini(&c->response);
	response_init(&c->response);
	*context = NULL;
	watchdog_phase(&c->watchdog, PHASE_IDLE, c->rest->limits.idle_ms);
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
	c->of_socket = c->served = e->served;
	c->mhd = mhd;
	c->thread = pthread_self();
	c->watchdog.fd =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	c->watchdog.stays = e->served->while_stopping;
	c->target = BUF_INIT(CONNECTION_MEMORY);
	c->body = BUF_INIT(0); /* receive.c sets the limit */
	response_init(&c->response);
	crypto_random(c->id, sizeof(c->id));
	c->peer.is_unix = e->listener.is_unix;
	c->peer.tls = e->rest->tls && !e->listener.is_unix;
	if (c->peer.is_unix)
		c->peer.trusted = is_trusted(e->rest, c->watchdog.fd);
	else
		find_ip(c,
			MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
				->client_addr);
	return c;
}

static void connection_free(struct connection *c)
{
	connection_drop_stream(c);
	buf_fini(&c->target);
	buf_fini(&c->body);
	(void)connection_hold(c, 0);
	response_fini(&c->response);
	free(c->access);
	free(c);
}

/* MHD closes the descriptor after the second of these calls. */
void connection_notify(void *arg, struct MHD_Connection *mhd, void **context,
	enum MHD_ConnectionNotificationCode what)
{
	struct endpoint *e = arg;
	struct connection *c = *context;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		c = connection_new(e, mhd);
		*context = c; /* NULL: MHD closes it at its first request */
		if (c != NULL)
			watchdog_add(e->rest->watchdog, &c->watchdog, e->rest->limits.head_ms);
	} else if (c != NULL) {
		watchdog_remove(e->rest->watchdog, &c->watchdog);
		connection_free(c);
		*context = NULL;
	}
}

enum MHD_Result connection_accept(void *arg, const struct sockaddr *address, socklen_t n)
{
	struct endpoint *e = arg;
	(void)address;
	(void)n;
	return takes_requests(e->rest, e->served) ? MHD_YES : MHD_NO;
}
