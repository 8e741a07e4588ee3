/* SPDX-License-Identifier: MIT
 * Queries over the rows of one table: seek to the key ranges, evaluate the filter on decoded
 * values, return rows in key order.  The work depends on the rows in the ranges, not on the
 * table. */
#ifndef SERVICE_QUERY_QUERIES_H
#define SERVICE_QUERY_QUERIES_H

#include "base/buf.h"
#include "model/entity.h"
#include "query/filter.h"
#include "query/filter_mismatch.h"
#include "query/key_ranges.h"
#include "service/core/service.h"

/* Limits the rows that a query returns to those that a caller may see. */
struct query_requester {
	/* Returns true if the caller may see a row with these attributes; dir: the rows of a
	 * partition. */
	bool (*sees)(const struct query_requester *v, const struct attrs *attrs, bool dir);
};

struct query {
	uint64_t table_id;
	const struct filter *filter;    /* NULL: all rows */
	const struct key_ranges *limit; /* NULL: none.  Other rows do not exist for this query */
	/* NULL: sees all rows.  Others do not exist for this query */
	const struct query_requester *requester;
	struct filter_mismatch *mismatch; /* NULL: none; else counts each row that is examined */
	/* UTF-8: start at this row or the next one; p NULL: at the start of the table or the
	 * partition */
	struct span from_pk, from_rk;
	size_t top; /* stop after so many rows; 0: no limit */
	/* stop when the documents returned have so many bytes; 0: no limit */
	size_t max_bytes;
	uint64_t deadline_us; /* clock_mono_us(): stop then or earlier, see below; 0: no limit */
	bool decode;          /* always decode the entity of a row */
	bool keys_only; /* of a row's document and id nothing is wanted but what the filter needs */
	bool no_documents; /* rows come without document, unless the filter needs it */
	/* do not read partitions over the throttle limit (service/core/heat.h).  The query ends
	 * before such a partition, or fails with ERR_THROTTLED if it is the first one */
	bool throttled;
};

/* Valid only during the call. */
struct query_row {
	struct span pk, rk; /* UTF-8 */
	int64_t version;
	struct span document;
	unsigned flags;              /* enum item_flags of the row */
	const struct item *item;     /* as stored, with its body */
	const struct entity *entity; /* decoded; may be NULL unless query.decode is set */
};

/* Takes a row; false stops the query after it.  May be slow.  Must not call the service. */
typedef bool (*query_row_fn)(void *arg, const struct query_row *row);

struct query_end {
	bool more; /* stopped early: next_pk and next_rk say where to continue (query.from_*) */
	struct buf next_pk, next_rk; /* UTF-8 */
	enum key_plan plan;
	uint64_t looked_at, matched;
};

/* Runs a query.  Call query_end_fini(ret) also after an error.  A missing table has no rows.
 *
 * If `top`, `max_bytes` or fn stops it, `more` means that the ranges have another row, which may
 * not match.  If the search for one takes long, it gives up: next_* can then lead to no row.
 *
 * Consistency: with a view v, all rows are of that view.  Without one, each partition is read at
 * one moment, so a change set is seen completely or not at all.  Later partitions may be read at a
 * later moment.
 *
 * An open view keeps the log on disk from restarting.  So the query replaces its own view at the
 * next partition after 250 ms.  If a partition takes long, a query with a deadline ends when its
 * view is a second old, as at the deadline.  Without a deadline the view stays for the partition.
 *
 * Keys come in order and never twice. */
enum err query_run(struct service *s, struct store_view *v, const struct query *q, query_row_fn fn,
	void *arg, struct query_end *ret);
/* Frees the keys. */
void query_end_fini(struct query_end *e);

#endif
