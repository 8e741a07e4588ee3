/* SPDX-License-Identifier: MIT
 * The clients of one account: each thread borrows one for its requests, and connections stay open for
 * the next one. */
#ifndef CLOUDSTORE_CLIENTS_H
#define CLOUDSTORE_CLIENTS_H

#include "base/lock.h"
#include "cloud/client.h"

#define CLIENTS_AT_REST 16

struct clients {
	struct endpoint at;
	struct client_options options;
	struct mutex lock; /* guards what follows */
	struct client *rest[CLIENTS_AT_REST];
	size_t n;
};

/* Copies the endpoint, and borrows the strings of the options. */
void clients_init(
	struct clients *c, const struct endpoint *at, const struct client_options *options);
/* No client may be borrowed. */
void clients_fini(struct clients *c);
/* Borrows a client; give it back with clients_give().  Errors of client_new(). */
enum err clients_take(struct clients *c, struct client **ret, struct err_detail *why);
void clients_give(struct clients *c, struct client *client);

#endif
