/* SPDX-License-Identifier: MIT
 * Which keys can match: a set of (PartitionKey, RowKey) pairs that is closed under and, or,
 * not, so that a filter's bounds become seeks.  The set is always a superset of the rows
 * that match: the filter is still evaluated on each row.
 * Normal form: disjoint spans of PartitionKeys in order, each with its disjoint spans of
 * RowKeys in order.  Keys are in order form here (model/key.h). */
#ifndef QUERY_KEY_RANGES_H
#define QUERY_KEY_RANGES_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"
#include "query/filter.h"

#include <stdbool.h>
#include <stddef.h>

/* From lo to hi.  lo.p NULL: from the first key ("" is the first); hi.p NULL: no end.
 * lo_open, hi_open: without the bound itself. */
struct key_span {
	struct span lo, hi;
	bool lo_open, hi_open;
};

struct key_range {
	struct key_span pk;
	const struct key_span *rk; /* nrk spans; at least one */
	size_t nrk;
};

struct key_ranges {
	struct key_range *ranges; /* ascending, disjoint; n == 0: nothing can match */
	size_t n;
	struct arena arena;
};

/* What the service calls the ways to find rows, cheapest first. */
enum key_plan {
	KEY_PLAN_NOTHING,
	KEY_PLAN_POINT,           /* one PartitionKey, one RowKey */
	KEY_PLAN_POINTS,          /* several of them */
	KEY_PLAN_ROW_RANGE,       /* within single partitions */
	KEY_PLAN_PARTITION_RANGE, /* bounds on PartitionKey, or a seek in each partition */
	KEY_PLAN_SCAN,            /* the whole table */
};

/* Everything. */
enum err key_ranges_all(struct key_ranges *ret);
/* The keys that can match the filter; bounded work and memory whatever the filter (where it
 * has too many parts, a larger set; a thousand points stay points).  key_ranges_fini() in any
 * case.  ERR_NO_MEMORY. */
enum err key_ranges_of_filter(const struct filter *f, struct key_ranges *ret);
/* From (pk_lo, rk_lo) to (pk_hi, rk_hi) in key order, both ends included: what a SAS allows
 * (protocol section 4.5).  A p of NULL leaves that bound out (a bound on rows says nothing
 * without the one on partitions); keys are UTF-8 here.  Keys longer than any legal key are
 * fine.  Exact. */
enum err key_ranges_between(struct span pk_lo, struct span rk_lo, struct span pk_hi,
	struct span rk_hi, struct key_ranges *ret);
/* a becomes a and b, exactly.  On failure a holds nothing. */
enum err key_ranges_intersect(struct key_ranges *a, const struct key_ranges *b);
void key_ranges_fini(struct key_ranges *r);

/* pk, rk in order form. */
bool key_ranges_hold(const struct key_ranges *r, struct span pk, struct span rk);
enum key_plan key_ranges_plan(const struct key_ranges *r);
const char *key_plan_name(enum key_plan plan); /* "point", "row range", ... */

/* Whether a key lies before the span, in it (0) or behind it. */
int key_span_compare(const struct key_span *s, struct span key);
/* Whether it holds one key only, which is hi then (lo.p may be NULL for ""). */
bool key_span_is_point(const struct key_span *s);

#endif
