/* SPDX-License-Identifier: MIT
 * The state of one query.  Private to queries.c, which walks the partitions, query_run.c, which
 * reads their rows, and query_find.c. */
#ifndef SERVICE_QUERY_QUERY_RUN_H
#define SERVICE_QUERY_QUERY_RUN_H

#include "base/arena.h"
#include "model/limits.h"
#include "service/query/queries.h"

struct query_partition {
	uint64_t id, size;
	struct span key; /* in order form */
	bool unseen;     /* the requester may not see its rows */
};

struct query_run {
	struct service *service;
	struct store *store;
	struct store_view *view;
	struct store_view *own; /* the view, if the query opened it */
	uint64_t own_since;
	const struct query *q;
	query_row_fn fn;
	void *arg;
	struct query_end *end;
	struct key_ranges ranges;
	struct span from_pk, from_rk; /* in order form; p NULL: none */
	struct arena arena;           /* owns from_pk and from_rk */

	bool needs_properties, uses_row_key;
	const struct value **values; /* by slot; NULL without a filter */
	struct value *picked;        /* by slot: values of a document that was not decoded */
	struct value pk_value, rk_value, time_value;
	struct entity entity;

	struct span pk_order;                          /* the partition, in order form */
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES]; /* UTF-8 */
	const struct key_span *spans;                  /* spans of RowKeys that one scan reads */
	size_t nspans;
	size_t rows_out; /* rows returned from the partition */

	bool moved;   /* a unit of work was done */
	bool matched; /* the last row that look_at() saw */
	bool full;    /* only the key of the next row is wanted */
	bool late;    /* must stop as soon as possible */
	bool done;
	unsigned rows; /* since the last check of the clock */
	size_t bytes;
	unsigned ahead; /* units of work since `full` was set */
	size_t bytes_out;
	enum err e;
};

/* Returns true if the requester may see a row; dir: the rows of a partition. */
static inline bool query_run_sees(const struct query_run *r, const struct item *it, bool dir)
{
	const struct query_requester *v = r->q->requester;
	return v == NULL || v->sees(v, &it->attrs, dir);
}

/* Returns true if the query has ended or failed. */
static inline bool query_run_stopped(const struct query_run *r)
{
	return r->done || r->e != ERR_OK;
}

/* Returns true if the query's own view is older than `us`. */
static inline bool query_run_view_is_older(const struct query_run *r, uint64_t now, uint64_t us)
{
	return r->own != NULL && now - r->own_since >= us;
}

/* Returns true if the query must stop before the next unit of work, which is not a row of the
 * ranges.  Counts the unit. */
bool query_run_is_enough(struct query_run *r);
/* Ends the query at these keys, in order form: the next call continues there. */
void query_run_stop_at(struct query_run *r, struct span pk, struct span rk);
/* Returns true if the key can exist.  A bound of a filter can be longer than any key. */
bool query_run_is_key(struct span order);
/* Takes a row of the ranges: ends the query before it if the query is full, else looks at it. */
void query_run_take(struct query_run *r, const struct item *it);

/* ---- query_find.c ---- */

/* Returns true if the engine can find the rows of the query by its filter. */
bool query_run_can_find(const struct query_run *r);
/* Reads all rows of the query.  ERR_NOT_SUPPORTED: the engine does not know this filter, and the ranges must be
 * walked. */
enum err query_run_find(struct query_run *r);

/* ---- query_run.c ---- */

/* Reads the rows of a partition in these spans, in order, until the query stops.  The caller has
 * set r->pk and r->pk_order.  from: where to start in the first span; p NULL: at its beginning.
 * Leaves errors in r->e. */
void query_run_read(struct query_run *r, const struct query_partition *p,
	const struct key_span *spans, size_t n, struct span from);

#endif
