/* SPDX-License-Identifier: MIT */
#include "daemon/core/sd_notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

void sd_notify_send(const char *state)
{
	const char *path = secure_getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t n = path != NULL ? strlen(path) : 0;
	if (n < 2 || n >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(address.sun_path, path, n);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return;
	(void)sendto(sock, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	close(sock);
}

bool sd_stderr_is_journal(void)
{
	const char *named = secure_getenv("JOURNAL_STREAM");
	char ours[64];
	struct stat st;
	if (named == NULL || fstat(STDERR_FILENO, &st) != 0)
		return false;
	(void)snprintf(ours, sizeof(ours), "%" PRIuMAX ":%" PRIuMAX, (uintmax_t)st.st_dev,
		(uintmax_t)st.st_ino);
	return strcmp(named, ours) == 0;
}
