/* SPDX-License-Identifier: MIT
 * The keys that can match a filter: a set of (PartitionKey, RowKey) pairs, so that the bounds of a
 * filter become seeks.  The set is a superset of the rows that match, so the filter must still be
 * evaluated on each row.
 *
 * Normal form: disjoint spans of PartitionKeys in order, each with disjoint spans of RowKeys in
 * order.  Keys are in order form (model/key.h). */
#ifndef QUERY_KEY_RANGES_H
#define QUERY_KEY_RANGES_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"
#include "query/filter.h"

#include <stdbool.h>
#include <stddef.h>

/* The keys from lo to hi.  lo.p NULL: from the first key, which is "".  hi.p NULL: without an end.
 * lo_open and hi_open exclude the bound itself. */
struct key_span {
	struct span lo, hi;
	bool lo_open, hi_open;
};

struct key_range {
	struct key_span pk;
	const struct key_span *rk; /* nrk spans, at least one */
	size_t nrk;
};

struct key_ranges {
	struct key_range *ranges; /* ascending and disjoint; n is 0 if nothing can match */
	size_t n;
	struct arena arena;
};

/* How a query finds its rows, in the service's terms, cheapest first. */
enum key_plan {
	KEY_PLAN_NOTHING,
	KEY_PLAN_POINT,           /* one PartitionKey, one RowKey */
	KEY_PLAN_POINTS,          /* several keys */
	KEY_PLAN_ROW_RANGE,       /* all in single partitions */
	KEY_PLAN_PARTITION_RANGE, /* bounds on PartitionKey, or a seek in each partition */
	KEY_PLAN_SCAN,            /* the whole table */
};

/* Sets *ret to all keys. */
enum err key_ranges_all(struct key_ranges *ret);
/* Sets *ret to the keys that can match the filter.  Work and memory are bounded: a filter with many
 * parts gets a larger set.  A thousand points stay exact.  Call key_ranges_fini() also after an
 * error.  ERR_NO_MEMORY. */
enum err key_ranges_of_filter(const struct filter *f, struct key_ranges *ret);
/* Sets *ret to exactly the keys between two bounds, both included: the range of a SAS (protocol
 * section 4.5).  Keys are UTF-8 and may be longer than any valid key.  p NULL leaves a bound out; a
 * row bound without its partition bound is ignored. */
enum err key_ranges_between(struct span pk_lo, struct span rk_lo, struct span pk_hi,
	struct span rk_hi, struct key_ranges *ret);
/* Reduces a to the keys that are in both, exactly.  After an error a is empty. */
enum err key_ranges_intersect(struct key_ranges *a, const struct key_ranges *b);
/* Frees the set, which is empty afterwards. */
void key_ranges_fini(struct key_ranges *r);

/* Returns true if the set contains the key pair, given in order form. */
bool key_ranges_hold(const struct key_ranges *r, struct span pk, struct span rk);
/* Returns the plan for these ranges. */
enum key_plan key_ranges_plan(const struct key_ranges *r);
const char *key_plan_name(enum key_plan plan); /* such as "point", "row range" */

/* Returns -1, 0 or 1: the key is before the span, in it, or behind it. */
int key_span_compare(const struct key_span *s, struct span key);
/* Returns true if the span has one key, which is hi.  lo.p can be NULL for "". */
bool key_span_is_point(const struct key_span *s);

#endif
