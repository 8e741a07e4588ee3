/* SPDX-License-Identifier: MIT
 * One HTTP answer as plain data. */
#ifndef REST_RESPONSE_H
#define REST_RESPONSE_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

/* The most a page of rows can become: 4 MiB of documents, escapes and metadata. */
#define RESPONSE_BODY_LIMIT ((size_t)64 << 20)
#define RESPONSE_HEADERS_LIMIT ((size_t)64 << 10)

struct response {
	int status;
	int outcome; /* the status that counts in the statistics, where it is not the answer's
			own: of a batch whose operations failed; else 0 */
	struct buf headers; /* "Name\0value\0" each */
	struct buf body;
};

void response_init(struct response *r);
void response_fini(struct response *r);
/* Status 0, no headers, no body. */
void response_clear(struct response *r);

/* Characters that a header cannot carry are left out; a header without a value is, too. */
void response_header(struct response *r, const char *name, struct span value);
void response_header_str(struct response *r, const char *name, const char *value);
/* *at starts at 0; false at the end.  NUL-terminated. */
bool response_header_next(
	const struct response *r, size_t *at, const char **ret_name, const char **ret_value);
/* The first value of that name; NULL. */
const char *response_header_get(const struct response *r, const char *name);
const char *http_reason(int status);

#endif
