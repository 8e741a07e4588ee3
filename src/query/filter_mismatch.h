/* SPDX-License-Identifier: MIT
 * Counts the rows that a filter misses because a value has another type.  For example, a String
 * that looks like a DateTime never equals a DateTime literal.  For .explain. */
#ifndef QUERY_FILTER_MISMATCH_H
#define QUERY_FILTER_MISMATCH_H

#include "codec/json_build.h"
#include "query/filter.h"

struct filter_mismatch;

/* Borrows the filter.  NULL when memory is out. */
struct filter_mismatch *filter_mismatch_new(const struct filter *f);
void filter_mismatch_free(struct filter_mismatch *w); /* Accepts NULL. */
/* Resets the counts. */
void filter_mismatch_clear(struct filter_mismatch *w);
/* Counts one row.  values is that of filter_eval(). */
void filter_mismatch_row(struct filter_mismatch *w, const struct value *const *values);
/* Adds "notes", an array with a text for each property of which rows were missed, and for each key
 * that is compared with something else than a string.  Adds nothing where there is none. */
void filter_mismatch_tell(const struct filter_mismatch *w, struct json_build *b);

#endif
