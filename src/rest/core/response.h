/* SPDX-License-Identifier: MIT
 * An HTTP response as plain data. */
#ifndef REST_CORE_RESPONSE_H
#define REST_CORE_RESPONSE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most that a page of rows can need: 4 MiB of documents, with escapes and metadata. */
#define RESPONSE_BODY_LIMIT ((size_t)64 << 20)
#define RESPONSE_HEADERS_LIMIT ((size_t)64 << 10)

/* A body that is read while it is sent. */
struct response_source {
	uint64_t size;
	/* Reads n bytes at this offset.  An error closes the connection. */
	enum err (*read)(void *arg, uint64_t offset, char *out, size_t n);
	void (*free)(void *arg);
	void *arg; /* NULL: there is no source */
};

struct response {
	int status;
	int outcome; /* the status for the metrics if it differs: of a batch that failed; else 0 */
	/* By a rule of faults (service/core/faults.h): it is no failure of the server, it is sent so
	 * many ms later, or the connection is closed in its place. */
	bool ordered, hang_up;
	uint32_t wait_ms;
	struct buf headers; /* "Name\0value\0" each */
	struct buf body;
	struct response_source source; /* in place of body; the response owns it */
};

/* Makes an empty response without memory. */
void response_init(struct response *r);
/* Frees the headers and the body. */
void response_fini(struct response *r);
/* Resets the status and removes headers and body. */
void response_clear(struct response *r);

/* Adds a header.  Characters that a header cannot contain are dropped, and so is a header without a
 * value. */
void response_header(struct response *r, const char *name, struct span value);
void response_header_str(struct response *r, const char *name, const char *value);
/* Iterates over the headers; *at starts at 0.  Returns false at the end.  The strings end in
 * NUL. */
bool response_header_next(
	const struct response *r, size_t *at, const char **ret_name, const char **ret_value);
/* Returns the first value of this header, or NULL. */
const char *response_header_get(const struct response *r, const char *name);
/* Returns the reason phrase of an HTTP status. */
const char *http_reason(int status);

#endif
