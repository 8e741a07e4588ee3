/* SPDX-License-Identifier: MIT
 * The caller's end of the control channel. */
#include "daemon/control.h"
#include "daemon/control_wire.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A stranger could have taken the name: it must not get our files. */
static bool trusted(int sock, const struct stat *store)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0)
		return false;
	return peer.uid == 0 || peer.uid == geteuid() || peer.uid == store->st_uid;
}

int control_connect(const struct stat *store)
{
	struct sockaddr_un address;
	socklen_t n = control_address(store, &address);
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -1;
	if (connect(sock, (struct sockaddr *)&address, n) == 0 && trusted(sock, store))
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
	struct control_head head = { CONTROL_MAGIC, (uint32_t)argc, (uint32_t)bytes,
		(uint32_t)nfds };
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
static bool hear(int sock, void *bytes, size_t n, bool (*cancelled)(void *arg), void *arg)
{
	ssize_t got;
	while ((got = recv(sock, bytes, n, MSG_WAITALL)) < 0 && errno == EINTR)
		if (cancelled(arg))
			shutdown(sock, SHUT_WR);
	return got == (ssize_t)n;
}

enum control_result control_call(int sock, int argc, char *const *argv, const int *fds, size_t nfds,
	bool (*cancelled)(void *arg), void *arg, int *ret_code)
{
	char taken;
	int32_t code;
	enum control_result result = CONTROL_NOT_TAKEN;
	if (send_all(sock, argc, argv, fds, nfds) && hear(sock, &taken, 1, cancelled, arg))
		result = hear(sock, &code, sizeof(code), cancelled, arg) ? CONTROL_DONE
									 : CONTROL_LOST;
	close(sock);
	if (result == CONTROL_DONE)
		*ret_code = code;
	return result;
}
