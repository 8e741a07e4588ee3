/* SPDX-License-Identifier: MIT
 * Queries over the rows of one table: seeks to the key ranges, evaluates the filter on
 * decoded values, hands out the rows in key order.  Work is bounded by what lies in the
 * ranges, not by the table. */
#ifndef SERVICE_QUERY_QUERIES_H
#define SERVICE_QUERY_QUERIES_H

#include "base/buf.h"
#include "model/entity.h"
#include "query/filter.h"
#include "query/filter_watch.h"
#include "query/key_ranges.h"
#include "service/core/service.h"

/* Who may not see everything. */
struct query_viewer {
	/* Whether it sees the rows of a partition (dir), or a row, that has these attributes. */
	bool (*sees)(const struct query_viewer *v, const struct attrs *attrs, bool dir);
};

struct query {
	uint64_t table_id;
	const struct filter *filter;    /* NULL: all */
	const struct key_ranges *limit; /* NULL: none.  Rows outside do not exist for this query */
	const struct query_viewer *viewer; /* NULL: sees all.  What it does not see does not exist
					      for this query */
	struct filter_watch *watch;        /* NULL: none; else told of each row that is looked at */
	struct span from_pk, from_rk;      /* UTF-8: start at this row or the next one; p NULL: from
					   the start (of the table, of the partition) */
	size_t top;                        /* stop after so many rows; 0: never */
	size_t max_bytes;                  /* stop once the documents of the rows handed out reach
					   this; 0: never */
	uint64_t deadline_us; /* clock_mono_us(): stop then, or sooner (below); 0: never */
	bool decode;          /* rows come with their entity, filter or not */
	bool throttled; /* partitions over their target (service/core/heat.h) are not read: ends
				 there, with ERR_THROTTLED if that is where it starts */
};

/* Valid during the call only. */
struct query_row {
	struct span pk, rk; /* UTF-8 */
	int64_t version;
	struct span document;
	unsigned flags;              /* enum item_flags of the row */
	const struct item *item;     /* as it is in the store, with its body */
	const struct entity *entity; /* decoded; may be NULL where query.decode is false */
};

/* False stops the query: the row counts as taken.  May be slow; must not call into the
 * service. */
typedef bool (*query_row_fn)(void *arg, const struct query_row *row);

struct query_end {
	bool more; /* it stopped early: next_pk and next_rk name where to go on (query.from_*) */
	struct buf next_pk, next_rk; /* UTF-8 */
	enum key_plan plan;
	uint64_t looked_at, matched;
};

/* query_end_fini(ret) in any case.  Where `top`, `max_bytes` or fn stop it, `more` is set only
 * if there is another row in the ranges (which may turn out not to match), or if looking for
 * one takes long: then next_* may lead to nothing.
 *
 * Consistency: with a view v, everything is of its moment.  Where v is NULL, each partition
 * is of one moment, and so shows all of a change set (which lies in one partition) or none;
 * a later partition may be of a later moment.  For an open view holds back the store's log:
 * one of 250 ms is changed for a new one at the next partition.  A partition that takes long
 * ends a query with a deadline once the view is a second old: `more`, as at the deadline.
 * Without a deadline the view stays for the partition.  Keys come in order, none twice.
 * ERR_TABLE_NOT_FOUND is not told here: a table that is gone has no rows. */
enum err query_run(struct service *s, struct store_view *v, const struct query *q, query_row_fn fn,
	void *arg, struct query_end *ret);
void query_end_fini(struct query_end *e);

#endif
