/* SPDX-License-Identifier: MIT
 * Listening sockets: parses endpoints, binds them, and creates and removes the file of a Unix
 * socket. */
#ifndef REST_HTTP_LISTEN_H
#define REST_HTTP_LISTEN_H

#include "base/err.h"
#include "rest/rest.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/un.h>

/* A name can have several addresses. */
#define LISTENERS_MAX (2 * REST_ENDPOINTS_MAX)

struct listener {
	int fd;
	bool is_unix;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* of a Unix socket */
	/* identify the file of the Unix socket */
	dev_t device;
	ino_t inode;
	char text[160]; /* such as "http://127.0.0.1:10002" or "unix:/path" */
};

/* Checks the syntax.  ERR_INVALID_INPUT with the reason. */
enum err endpoint_check(const char *endpoint, struct err_detail *detail);

/* Binds an endpoint and listens.  Adds one listener, or two for "localhost", and increases *n.
 * tls: only for the text.  open_to_all: all users may connect to the Unix socket.  On an error
 * nothing is added.  ERR_BUSY, ERR_ACCESS, ERR_INVALID_INPUT, ERR_IO. */
enum err listen_at(const char *endpoint, bool tls, bool open_to_all, struct listener *list,
	size_t *n, struct err_detail *detail);
/* Returns true if other machines cannot connect: a Unix socket, or a loopback address. */
bool listener_is_local(const struct listener *l);
/* Closes the socket.  Removes the file of a Unix socket if it is still the same file. */
void listener_close(struct listener *l);

#endif
