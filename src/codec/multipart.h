/* SPDX-License-Identifier: MIT
 * The body of a $batch request (protocol section 7): MIME parts with one HTTP request each.
 * Accepts all variants that clients send: CRLF or LF, blank lines before a body, missing final
 * delimiters, quoted boundaries, a preamble, Content-ID in either head.  All spans borrow from the
 * text. */
#ifndef CODEC_MULTIPART_H
#define CODEC_MULTIPART_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

struct mime_header {
	struct span name, value; /* value has no blanks at its ends */
};

/* One request in the batch. */
struct batch_part {
	bool in_change_set;
	size_t change_set; /* its 0-based number, if in_change_set */
	struct span method, target;
	struct mime_header *headers; /* of the request */
	size_t nheaders;
	struct span content_id; /* from either head; p is NULL without one */
	struct span body;
};

struct batch_body {
	struct batch_part *parts; /* in their order; the arena owns them */
	size_t nparts;
	size_t nchange_sets; /* empty ones included */
};

/* Parses the body of a request with this Content-Type ("multipart/mixed; boundary=...").
 * ERR_INVALID_INPUT with the line and what is missing, also for a change set inside a change set.
 * ERR_BATCH_TOO_LARGE at part max_parts + 1.  ERR_NO_MEMORY. */
enum err batch_body_parse(struct span content_type, struct span body, size_t max_parts,
	struct arena *arena, struct batch_body *ret, struct err_detail *detail);

/* Returns true if the body has the closing delimiter of the batch.  Without it the text may be
 * incomplete. */
bool batch_body_is_closed(struct span content_type, struct span body);

/* Returns the value, or NULL.  The case of names is ignored. */
const struct span *mime_header_find(const struct mime_header *headers, size_t n, const char *name);
/* Finds a parameter of a header value, such as "boundary", and removes its quotes.  Returns false
 * if there is none. */
bool mime_parameter(struct span value, const char *name, struct span *ret);

#endif
