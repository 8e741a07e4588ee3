/* SPDX-License-Identifier: MIT
 * Advice for filters written as in SQL or C; only for filter_parse.c. */
#ifndef QUERY_FILTER_HINT_H
#define QUERY_FILTER_HINT_H

#include "base/buf.h"
#include "base/span.h"

/* Appends a sentence with a space before it.  Does so if the token contains an operator of another
 * language, an upper-case keyword or a double quote. */
void filter_hint(struct span token, struct buf *out);

#endif
