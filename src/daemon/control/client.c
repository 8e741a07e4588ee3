/* SPDX-License-Identifier: MIT
 * The caller's end of the control channel. */
#include "daemon/control/control.h"
#include "daemon/control/wire.h"
#include "daemon/core/signals.h"
#include "daemon/core/terminal.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A stranger could have taken the name: it must not get our files. */
static bool trusted(int sock, const struct stat *store, struct ucred *ret)
{
	socklen_t n = sizeof(*ret);
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, ret, &n) != 0)
		return false;
	return ret->uid == 0 || ret->uid == geteuid() || ret->uid == store->st_uid;
}

int control_connect(const char *path, const struct stat *store, struct ucred *ret_server)
{
	struct sockaddr_un address;
	socklen_t n = control_address(store, &address);
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -1;
	/* While its queue is full. */
	signals_wait_answer(-1, "the process that serves '%s'", path);
	bool connected = connect(sock, (struct sockaddr *)&address, n) == 0;
	signals_go_on();
	if (connected && trusted(sock, store, ret_server))
		return sock;
	close(sock);
	return -1;
}

static bool send_all(int sock, int argc, char *const *argv, const int *fds, size_t nfds)
{
	size_t bytes = 0;
	for (int i = 0; i < argc; i++)
		bytes += strlen(argv[i]) + 1;
	if (bytes > CONTROL_WORDS_MAX || nfds > CONTROL_FILES_MAX)
		return false;
	uint32_t magic = terminal_describes(argc, argv) ? CONTROL_MAGIC_TERMINAL : CONTROL_MAGIC;
	struct control_head head = { magic, (uint32_t)argc, (uint32_t)bytes, (uint32_t)nfds };
	size_t n = nfds < CONTROL_GROUP ? nfds : CONTROL_GROUP;
	if (!control_send(sock, &head, sizeof(head), fds, n))
		return false;
	for (int i = 0; i < argc; i++)
		if (!control_send(sock, argv[i], strlen(argv[i]) + 1, NULL, 0))
			return false;
	while (n < nfds) {
		size_t more = nfds - n < CONTROL_GROUP ? nfds - n : CONTROL_GROUP;
		if (!control_send(sock, "", 1, fds + n, more))
			return false;
		n += more;
	}
	return true;
}

/* Exactly n bytes.  A half-closed connection tells the server to stop, and still answers. */
static bool hear(int sock, void *bytes, size_t n)
{
	ssize_t got;
	while ((got = recv(sock, bytes, n, MSG_WAITALL)) < 0 && errno == EINTR)
		if (signals_cancelled(NULL))
			shutdown(sock, SHUT_WR);
	return got == (ssize_t)n;
}

enum control_result control_call(int sock, const struct ucred *server, const char *path, int argc,
	char *const *argv, const int *fds, size_t nfds, int *ret_code)
{
	static const char whom[] = "process %d, which serves '%s',";
	char first = CONTROL_TAKES;
	int32_t code;
	enum control_result result = CONTROL_NOT_TAKEN;
	signals_wait_answer(sock, whom, (int)server->pid, path);
	/* A refused caller cannot send all, but still gets the reason. */
	bool sent = send_all(sock, argc, argv, fds, nfds), heard = hear(sock, &first, 1);
	if (heard && first == CONTROL_REFUSES) {
		result = CONTROL_REFUSED;
	} else if (sent && heard) {
		signals_wait_end(whom, (int)server->pid, path);
		result = hear(sock, &code, sizeof(code)) ? CONTROL_DONE : CONTROL_LOST;
	}
	signals_go_on();
	close(sock);
	if (result == CONTROL_DONE)
		*ret_code = code;
	return result;
}
