/* SPDX-License-Identifier: MIT
 * Counts rows that a filter misses because a value has another type: a String that looks like a DateTime,
 * a Guid or a number never equals such a literal.  For .explain. */
#ifndef QUERY_FILTER_WATCH_H
#define QUERY_FILTER_WATCH_H

#include "query/filter.h"

struct filter_watch;

/* Borrows the filter.  NULL: memory is out. */
struct filter_watch *filter_watch_new(const struct filter *f);
void filter_watch_free(struct filter_watch *w); /* NULL is fine */
/* Forgets the rows that it was told of. */
void filter_watch_clear(struct filter_watch *w);
/* One more row: values as for filter_eval(). */
void filter_watch_row(struct filter_watch *w, const struct value *const *values);
/* Appends one JSON string for each property of which rows were missed, and for each key that is
 * compared with something else than a string, with commas between them; nothing where there is none. */
void filter_watch_tell(const struct filter_watch *w, struct buf *out);

#endif
