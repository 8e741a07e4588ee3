/* SPDX-License-Identifier: MIT
 * recv(2) and send(2) below replace those of libc in this program, so that the HTTP library calls
 * them.  They note the descriptor for their thread.  If the library calls others instead, it sends
 * its own error page, as without this file. */
#include "rest/http/current_socket.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local int current = -1;

void current_socket_set(int fd)
{
	current = fd;
}

int current_socket(void)
{
	return current;
}

ssize_t recv(int fd, void *buf, size_t n, int flags)
{
	current = fd;
	return syscall(SYS_recvfrom, fd, buf, n, flags, NULL, NULL);
}

ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	current = fd;
	return syscall(SYS_sendto, fd, buf, n, flags, NULL, 0);
}
