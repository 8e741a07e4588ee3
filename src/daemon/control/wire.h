/* SPDX-License-Identifier: MIT
 * What goes over the control channel.  Both ends are the same machine, mostly the same
 * build: a head with the first files, the words, the other files in groups; back comes the
 * exit code.  A server that does not know the magic hangs up. */
#ifndef DAEMON_CONTROL_WIRE_H
#define DAEMON_CONTROL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* The last byte is the version.  In version 2 the words begin with a description of the caller's terminal
 * (daemon/core/terminal.h); servers of before 28 November 2026 know version 1 only. */
#define CONTROL_MAGIC UINT32_C(0x01736672)
#define CONTROL_MAGIC_TERMINAL UINT32_C(0x02736672)
#define CONTROL_WORDS_MAX (4u << 20) /* bytes */
#define CONTROL_FILES_MAX 4096u
/* The first byte of an answer. */
#define CONTROL_TAKES 0
#define CONTROL_REFUSES 1  /* the caller is of another user; nothing follows */
#define CONTROL_GROUP 200u /* files in one message; the kernel takes 253 */

struct control_head {
	uint32_t magic;
	uint32_t argc;
	uint32_t bytes; /* of the words with their NULs */
	uint32_t nfds;
};

/* The name of the socket of a store; returns the length for bind() and connect(). */
socklen_t control_address(const struct stat *store, struct sockaddr_un *ret);

/* n bytes and up to CONTROL_GROUP descriptors. */
bool control_send(int sock, const void *bytes, size_t n, const int *fds, size_t nfds);
/* Exactly n bytes; the descriptors that came along (close-on-exec), at most cap. */
bool control_receive(int sock, void *bytes, size_t n, int *fds, size_t cap, size_t *ret_nfds);

#endif
