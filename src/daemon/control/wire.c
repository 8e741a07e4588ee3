/* SPDX-License-Identifier: MIT */
#include "daemon/control/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

socklen_t control_address(const struct stat *store, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	int n = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "rowfs-%llx-%llx",
		(unsigned long long)store->st_dev, (unsigned long long)store->st_ino);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

union group {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(CONTROL_GROUP * sizeof(int))];
};

bool control_send(int sock, const void *bytes, size_t n, const int *fds, size_t nfds)
{
	union group g;
	const char *p = bytes;
	while (n > 0) {
		struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = n };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
		if (nfds > 0) {
			memset(&g, 0, sizeof(g));
			msg.msg_control = g.bytes;
			msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
			struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
			c->cmsg_level = SOL_SOCKET;
			c->cmsg_type = SCM_RIGHTS;
			c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
			memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
		}
		ssize_t sent = sendmsg(sock, &msg, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		p += sent;
		n -= (size_t)sent;
		nfds = 0;
	}
	return true;
}

/* Takes the descriptors of a message over; false (and closes them) if they are too many. */
static bool take_fds(struct msghdr *msg, int *fds, size_t cap, size_t *n)
{
	bool ok = (msg->msg_flags & MSG_CTRUNC) == 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t got = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < got; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (*n < cap) {
				fds[(*n)++] = fd;
			} else {
				close(fd);
				ok = false;
			}
		}
	}
	return ok;
}

bool control_receive(int sock, void *bytes, size_t n, int *fds, size_t cap, size_t *ret_nfds)
{
	union group g;
	char *p = bytes;
	*ret_nfds = 0;
	while (n > 0) {
		struct iovec iov = { .iov_base = p, .iov_len = n };
		struct msghdr msg = { .msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = g.bytes,
			.msg_controllen = sizeof(g.bytes) };
		ssize_t got = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0 || !take_fds(&msg, fds, cap, ret_nfds))
			return false;
		p += got;
		n -= (size_t)got;
	}
	return true;
}
