/* SPDX-License-Identifier: MIT
 * Sockets that listen: an endpoint's text, what it is bound to, and the file of a Unix
 * socket, which is made, replaced if it is stale, and removed here. */
#ifndef REST_LISTEN_H
#define REST_LISTEN_H

#include "base/err.h"
#include "rest/rest.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/un.h>

/* One name can have several addresses. */
#define LISTENERS_MAX (2 * REST_ENDPOINTS_MAX)

struct listener {
	int fd;
	bool is_unix;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* Unix */
	dev_t device;                                           /* of that file, to know it again */
	ino_t inode;
	char text[160]; /* "http://127.0.0.1:10002", "unix:/path" */
};

/* ERR_INVALID_INPUT, with what is wrong. */
enum err endpoint_check(const char *endpoint, struct err_detail *detail);

/* Binds an endpoint and listens: adds one listener, or two for "localhost".  tls: for the
 * text; open_to_all: others than the owner may connect to the Unix socket.  On failure
 * nothing is added; ERR_BUSY, ERR_ACCESS, ERR_INVALID_INPUT, ERR_IO. */
enum err listen_at(const char *endpoint, bool tls, bool open_to_all, struct listener *list,
	size_t *n, struct err_detail *detail);
/* Removes the file of a Unix socket if it still is ours. */
void listener_close(struct listener *l);

#endif
