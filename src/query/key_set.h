/* SPDX-License-Identifier: MIT
 * The algebra behind key_ranges.c: union and intersection of key sets in normal form.  Segments
 * share spans of RowKeys that come from the same part of a filter.  Shared spans are immutable.
 *
 * Overlapping ranges can multiply.  Beyond a budget, a large set is replaced by its bounding box,
 * which is a superset. */
#ifndef QUERY_KEY_SET_H
#define QUERY_KEY_SET_H

#include "query/key_ranges.h"

/* Spans of RowKeys; n may be 0. */
struct key_rows {
	const struct key_span *v;
	size_t n;
};

/* Disjoint segments in order; immutable; n may be 0. */
struct key_set {
	const struct key_range *v;
	size_t n;
};

/* State while sets are built.  Initialize arena and, for filters, limited. */
struct key_builder {
	struct arena *arena; /* owns the results */
	size_t spent;
	bool limited;           /* report ERR_RANGE at the end of the budget */
	enum err e;             /* the first error; later calls do nothing */
	struct key_span *spans; /* scratch */
	size_t nspans, spans_cap;
	struct key_range *ranges; /* scratch */
	size_t nranges, ranges_cap;
	struct key_rows memo_a, memo_b, memo_ret; /* caches the last combination */
};

/* Frees the scratch memory.  The sets remain in the arena. */
void key_builder_fini(struct key_builder *b);
/* Copies n elements to the arena.  Returns NULL if n is 0 or an error occurred. */
void *key_builder_keep(struct key_builder *b, const void *v, size_t n, size_t size);
/* Converts a key to order form.  A key beyond the length limit still differs from every valid
 * key. */
struct span key_builder_key(struct key_builder *b, struct span utf8);

/* Returns the set of all keys, or the empty set. */
struct key_set key_set_of_all(bool all);
/* Make a set from n <= 2 spans: all rows of these partitions, or these rows of all partitions. */
struct key_set key_set_of_partitions(struct key_builder *b, const struct key_span *pk, size_t n);
struct key_set key_set_of_rows(struct key_builder *b, const struct key_span *rk, size_t n);
/* Copies a set into the builder's arena.  Segments that share rows still do. */
struct key_set key_set_copy(struct key_builder *b, const struct key_ranges *r);
/* Returns the union or the intersection. */
struct key_set key_set_combine(
	struct key_builder *b, bool unite, struct key_set x, struct key_set y);
/* Does the same, or returns a superset where the budget is used up. */
struct key_set key_set_combine_within_budget(
	struct key_builder *b, bool unite, struct key_set x, struct key_set y);

/* Writes the keys k with `k op key` as up to two spans.  Returns how many. */
size_t key_spans_of(enum filter_op op, struct span key, struct key_span out[2]);
/* Returns true if the span has no bounds. */
bool key_span_is_all(const struct key_span *s);

#endif
