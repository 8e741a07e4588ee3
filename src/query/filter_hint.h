/* SPDX-License-Identifier: MIT
 * Advice for a filter that is written as in SQL or C; for filter_parse.c
 * only. */
#ifndef QUERY_FILTER_HINT_H
#define QUERY_FILTER_HINT_H

#include "base/buf.h"
#include "base/span.h"

/* Appends a sentence with a blank before it, if the token that is wrong is or holds an
 * operator of another language, a keyword in capitals or a double quote. */
void filter_hint(struct span token, struct buf *out);

#endif
