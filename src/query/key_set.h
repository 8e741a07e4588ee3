/* SPDX-License-Identifier: MIT
 * The algebra behind key_ranges.c: sets of keys in its normal form, united and intersected.
 * Spans of RowKeys are shared by the segments that came from the same part of a filter, and
 * never changed.  Where a filter's sets grow beyond the budget (staircases of overlapping
 * ranges), big sets become the one box around them: larger, never smaller. */
#ifndef QUERY_KEY_SET_H
#define QUERY_KEY_SET_H

#include "query/key_ranges.h"

/* Spans of RowKeys; n == 0: none. */
struct key_rows {
	const struct key_span *v;
	size_t n;
};

/* Disjoint segments in order; n == 0: nothing.  Never changed. */
struct key_set {
	const struct key_range *v;
	size_t n;
};

/* What sets are made with.  Begin with arena and, for filters, limited. */
struct key_builder {
	struct arena *arena; /* all that is kept */
	size_t spent;
	bool limited;           /* ERR_RANGE at the end of the budget */
	enum err e;             /* the first error; after it everything does nothing */
	struct key_span *spans; /* scratch */
	size_t nspans, spans_cap;
	struct key_range *ranges; /* scratch */
	size_t nranges, ranges_cap;
	struct key_rows memo_a, memo_b, memo_ret; /* the last combination of two */
};

/* Frees the scratch; what was made stays in the arena. */
void key_builder_fini(struct key_builder *b);
/* A copy of n elements in the arena; NULL where there is none (n 0) or there was an error. */
void *key_builder_keep(struct key_builder *b, const void *v, size_t n, size_t size);
/* The key in order form; one that is longer than any legal key stays different from all. */
struct span key_builder_key(struct key_builder *b, struct span utf8);

struct key_set key_set_of_all(bool all);
/* Of n <= 2 spans: every row of these partitions; these rows of every partition. */
struct key_set key_set_of_partitions(struct key_builder *b, const struct key_span *pk, size_t n);
struct key_set key_set_of_rows(struct key_builder *b, const struct key_span *rk, size_t n);
/* In the builder's arena, with rows still shared where neighbours share them. */
struct key_set key_set_copy(struct key_builder *b, const struct key_ranges *r);
/* x or y; x and y. */
struct key_set key_set_combine(
	struct key_builder *b, bool unite, struct key_set x, struct key_set y);
/* The same, or a larger set where the budget does not reach. */
struct key_set key_set_combine_within_budget(
	struct key_builder *b, bool unite, struct key_set x, struct key_set y);

/* The keys k with `k op key`: up to two spans; returns how many. */
size_t key_spans_of(enum filter_op op, struct span key, struct key_span out[2]);
bool key_span_is_all(const struct key_span *s);

#endif
