/* SPDX-License-Identifier: MIT
 * The server's end of the control channel: one thread that accepts, one per command.
 * Threads of commands are detached and counted; control_stop() waits until none is left. */
#include "base/lock.h"
#include "base/log.h"
#include "daemon/control/control.h"
#include "daemon/control/execute.h"
#include "daemon/control/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define COMMANDS_MAX 32 /* at once; more wait in the listen queue */

struct control {
	struct service *service;
	const struct command_table *table;
	const struct served *served;
	int listener;
	int wake[2]; /* written to at the end */
	pthread_t acceptor;
	atomic_bool stopping; /* running commands are to stop */
	atomic_bool closing;  /* no more are taken */
	struct mutex lock;
	pthread_cond_t changed;
	unsigned running; /* guarded by lock */
};

struct control_request {
	struct control *control;
	int sock;
	char *words;
	char **argv;
	int *fds;
	size_t nfds;
	struct control_head head;
};

static bool is_cancelled(void *arg)
{
	struct control_request *c = arg;
	if (atomic_load(&c->control->stopping))
		return true;
	struct pollfd p = { .fd = c->sock, .events = POLLRDHUP };
	return poll(&p, 1, 0) > 0;
}

/* *ret: the user, where it can be told. */
static bool is_allowed(int sock, uid_t *ret)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t n = sizeof(peer);
	bool known = getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0;
	*ret = peer.uid;
	return known && (peer.uid == 0 || peer.uid == geteuid());
}

/* It is told so, and need not try again. */
static void refuse(int sock, uid_t uid)
{
	const char refusal = CONTROL_REFUSES;
	log_client(
		LOG_KIND_COMMAND, uid, "a command of another user, %u, was refused", (unsigned)uid);
	(void)send(sock, &refusal, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool split_words(struct control_request *c)
{
	char *at = c->words, *end = c->words + c->head.bytes;
	c->argv = calloc((size_t)c->head.argc + 1, sizeof(*c->argv));
	if (c->argv == NULL)
		return false;
	for (uint32_t i = 0; i < c->head.argc; i++) {
		if (at >= end)
			return false;
		c->argv[i] = at;
		at += strlen(at) + 1; /* words[bytes] is 0 */
	}
	return at == end;
}

static bool receive(struct control_request *c)
{
	size_t got;
	c->fds = calloc(CONTROL_FILES_MAX, sizeof(*c->fds));
	if (c->fds == NULL)
		return false;
	if (!control_receive(c->sock, &c->head, sizeof(c->head), c->fds, CONTROL_GROUP, &c->nfds))
		return false;
	bool known = c->head.magic == CONTROL_MAGIC || c->head.magic == CONTROL_MAGIC_TERMINAL;
	if (!known || c->head.bytes > CONTROL_WORDS_MAX || c->head.argc > c->head.bytes ||
		c->head.nfds > CONTROL_FILES_MAX)
		return false;
	c->words = calloc((size_t)c->head.bytes + 1, 1);
	if (c->words == NULL || !control_receive(c->sock, c->words, c->head.bytes, NULL, 0, &got))
		return false;
	while (c->nfds < c->head.nfds) {
		char byte;
		bool ok = control_receive(
			c->sock, &byte, 1, c->fds + c->nfds, CONTROL_FILES_MAX - c->nfds, &got);
		c->nfds += got;
		if (!ok || got == 0)
			return false;
	}
	return c->nfds == c->head.nfds && c->nfds >= EXECUTE_INPUTS && split_words(c);
}

static void *serve_call(void *arg)
{
	struct control_request *c = arg;
	struct control *control = c->control;
	const char taken = CONTROL_TAKES;
	if (receive(c) && control_send(c->sock, &taken, 1, NULL, 0)) {
		const struct cmd_env at = { .service = control->service,
			.served = control->served,
			.cancelled = is_cancelled,
			.cancel_arg = c };
		int32_t code =
			execute(control->table, &at, (int)c->head.argc, c->argv, c->fds, c->nfds);
		(void)control_send(c->sock, &code, sizeof(code), NULL, 0);
	} else {
		for (size_t i = 0; i < c->nfds; i++)
			close(c->fds[i]);
	}
	close(c->sock);
	free(c->argv);
	free(c->words);
	free(c->fds);
	free(c);

	mutex_lock(&control->lock);
	control->running--;
	pthread_cond_broadcast(&control->changed);
	mutex_unlock(&control->lock);
	return NULL;
}

/* False where the call could not be started; the caller closes the socket. */
static bool start_call(struct control *control, int sock)
{
	pthread_t thread;
	struct control_request *c = calloc(1, sizeof(*c));
	if (c == NULL)
		return false;
	c->control = control;
	c->sock = sock;
	mutex_lock(&control->lock);
	while (control->running >= COMMANDS_MAX && !atomic_load(&control->closing))
		cond_wait(&control->changed, &control->lock);
	bool closing = atomic_load(&control->closing);
	control->running += !closing;
	mutex_unlock(&control->lock);
	if (closing) {
		free(c);
		return false;
	}
	if (pthread_create(&thread, NULL, serve_call, c) == 0) {
		pthread_detach(thread);
		return true;
	}
	mutex_lock(&control->lock);
	control->running--;
	pthread_cond_broadcast(&control->changed);
	mutex_unlock(&control->lock);
	free(c);
	return false;
}

static void *accept_calls(void *arg)
{
	struct control *c = arg;
	while (!atomic_load(&c->closing)) {
		struct pollfd p[2] = { { .fd = c->listener, .events = POLLIN },
			{ .fd = c->wake[0], .events = POLLIN } };
		if (poll(p, 2, -1) < 0 || p[0].revents == 0)
			continue;
		int sock = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC);
		if (sock < 0) {
			/* Out of descriptors: a moment later some may be free. */
			if (errno == EMFILE || errno == ENFILE)
				usleep(10000);
			continue;
		}
		struct timeval timeout = { .tv_sec = 5 };
		(void)setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
		uid_t uid;
		if (!is_allowed(sock, &uid)) {
			refuse(sock, uid);
			close(sock);
		} else if (!start_call(c, sock)) {
			close(sock);
		}
	}
	return NULL;
}

static enum err listen_at(struct control *c, const struct stat *store)
{
	struct sockaddr_un address;
	socklen_t n = control_address(store, &address);
	c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->listener < 0)
		return err_from_errno(errno);
	if (bind(c->listener, (struct sockaddr *)&address, n) != 0)
		return errno == EADDRINUSE ? ERR_NAME_EXISTS : err_from_errno(errno);
	return listen(c->listener, 64) == 0 ? ERR_OK : err_from_errno(errno);
}

static void release(struct control *c)
{
	int fds[3] = { c->listener, c->wake[0], c->wake[1] };
	for (size_t i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	pthread_cond_destroy(&c->changed);
	mutex_destroy(&c->lock);
	free(c);
}

enum err control_start(struct service *s, const struct stat *store,
	const struct command_table *table, const struct served *served, struct control **ret)
{
	struct control *c = calloc(1, sizeof(*c));
	if (c == NULL)
		return ERR_NO_MEMORY;
	c->service = s;
	c->table = table;
	c->served = served;
	c->listener = c->wake[0] = c->wake[1] = -1;
	mutex_init(&c->lock, RANK_CONTROL);
	pthread_cond_init(&c->changed, NULL);
	enum err e = listen_at(c, store);
	if (e == ERR_OK && pipe2(c->wake, O_CLOEXEC) != 0)
		e = err_from_errno(errno);
	if (e == ERR_OK && pthread_create(&c->acceptor, NULL, accept_calls, c) != 0)
		e = ERR_NO_MEMORY;
	if (e != ERR_OK) {
		release(c);
		return e;
	}
	*ret = c;
	return ERR_OK;
}

/* Who is not taken by now is told so by the end of the connection, and tries again. */
static void end(struct control *c)
{
	atomic_store(&c->closing, true);
	(void)!write(c->wake[1], "", 1);
	mutex_lock(&c->lock);
	pthread_cond_broadcast(&c->changed);
	mutex_unlock(&c->lock);
	pthread_join(c->acceptor, NULL);
	mutex_lock(&c->lock);
	while (c->running > 0)
		cond_wait(&c->changed, &c->lock);
	mutex_unlock(&c->lock);
	release(c);
}

void control_stop(struct control *c)
{
	if (c == NULL)
		return;
	atomic_store(&c->stopping, true);
	end(c);
}

/* Commands that run may wait for one that has just connected, as those of a copy do. */
void control_finish(struct control *c)
{
	if (c == NULL)
		return;
	mutex_lock(&c->lock);
	while (c->running > 0)
		cond_wait(&c->changed, &c->lock);
	atomic_store(&c->closing, true);
	mutex_unlock(&c->lock);
	end(c);
}
