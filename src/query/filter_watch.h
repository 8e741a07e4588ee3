/* SPDX-License-Identifier: MIT
 * Counts the rows that a filter misses because a value has another type.  For example, a String
 * that looks like a DateTime never equals a DateTime literal.  For .explain. */
#ifndef QUERY_FILTER_WATCH_H
#define QUERY_FILTER_WATCH_H

#include "query/filter.h"

struct filter_watch;

/* Borrows the filter.  NULL when memory is out. */
struct filter_watch *filter_watch_new(const struct filter *f);
void filter_watch_free(struct filter_watch *w); /* Accepts NULL. */
/* Resets the counts. */
void filter_watch_clear(struct filter_watch *w);
/* Counts one row.  values is that of filter_eval(). */
void filter_watch_row(struct filter_watch *w, const struct value *const *values);
/* Appends JSON strings with commas between them.  There is one for each property with missed rows,
 * and one for each key that the filter compares with a non-string. */
void filter_watch_tell(const struct filter_watch *w, struct buf *out);

#endif
