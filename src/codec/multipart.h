/* SPDX-License-Identifier: MIT
 * The body of a $batch request (protocol section 7): MIME parts, and the HTTP request in
 * each.  Every spelling that clients send: CRLF or bare LF, blank lines before a body,
 * missing final delimiters, quoted boundaries, a preamble, Content-ID in either head.
 * Everything borrows from the text. */
#ifndef CODEC_MULTIPART_H
#define CODEC_MULTIPART_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

struct mime_header {
	struct span name, value; /* value without blanks around it */
};

/* One request inside the batch. */
struct batch_part {
	bool in_change_set;
	size_t change_set; /* its number, 0-based, if in_change_set */
	struct span method, target;
	struct mime_header *headers; /* of the request */
	size_t nheaders;
	struct span content_id; /* from either head; p NULL if none */
	struct span body;
};

struct batch_body {
	struct batch_part *parts; /* in their order */
	size_t nparts;
	size_t nchange_sets; /* also those without a part */
};

/* content_type: of the whole request ("multipart/mixed; boundary=..."), body: all of it.
 * ERR_INVALID_INPUT with what is missing and the line; ERR_NO_MEMORY.  A part that is a
 * change set inside a change set is an error.  More than max_parts parts: parsing stops
 * there with ERR_BATCH_TOO_LARGE. */
enum err batch_body_parse(struct span content_type, struct span body, size_t max_parts,
	struct arena *arena, struct batch_body *ret, struct err_detail *detail);

/* Whether the delimiter that closes the batch stands in the text: what ends before it may be
 * the beginning of something longer. */
bool batch_body_is_closed(struct span content_type, struct span body);

/* NULL if there is none; names are compared without case. */
const struct span *mime_header_find(const struct mime_header *headers, size_t n, const char *name);
/* A parameter of a header value ("boundary", "charset"), quotes taken off. */
bool mime_parameter(struct span value, const char *name, struct span *ret);

#endif
