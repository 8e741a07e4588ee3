/* SPDX-License-Identifier: MIT
 * One HTTP request as plain data: what server.c makes of a connection's bytes, what a part
 * of a batch becomes, what tests and fuzzers write by hand.  Everything is borrowed. */
#ifndef REST_REQUEST_H
#define REST_REQUEST_H

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct header {
	struct span name, value;
};

/* Who is at the other end. */
struct peer {
	bool is_unix;
	bool trusted; /* a Unix peer that needs no signature */
	bool tls;
	char ip[46]; /* text of the address; "" on a Unix socket */
};

#define REQUEST_ID_BYTES 16

struct request {
	struct span method; /* as sent, upper case */
	struct span target; /* as on the wire: path, maybe absolute form, with its query */
	const struct header *headers;
	size_t nheaders;
	struct span body;
	const struct peer *peer;
	uint64_t since_us;  /* clock_mono_us() when all of it was there; 0: now */
	const uint8_t *id;  /* REQUEST_ID_BYTES that no other request has; NULL: they are made */
	const char *tenant; /* whom a challenge names; NULL: the default */
};

/* The first header of that name (without case), blanks around it taken off; p == NULL if
 * there is none. */
struct span request_header(const struct request *r, const char *name);
size_t request_header_count(const struct request *r, const char *name);

#endif
