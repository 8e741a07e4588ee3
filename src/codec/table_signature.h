/* SPDX-License-Identifier: MIT
 * The string that SharedKey and SharedKeyLite sign for tables (protocol section 4.2), but for
 * the canonical path between head and query.  The server checks it, the client makes it. */
#ifndef CODEC_TABLE_SIGNATURE_H
#define CODEC_TABLE_SIGNATURE_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>

struct table_signature {
	struct span method, content_md5, content_type;
	struct span date; /* x-ms-date, else Date */
	bool lite;        /* SharedKeyLite signs only the date */
};

/* Appends the lines before the path. */
void table_signature_head(const struct table_signature *s, struct buf *out);
/* Appends the query.  comp: its parameter of this name; p is NULL without one. */
void table_signature_query(struct span comp, struct buf *out);

#endif
