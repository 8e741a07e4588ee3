/* SPDX-License-Identifier: MIT
 * One run of a query while it goes: what queries.c, which walks the partitions, and query_run.c,
 * which reads their rows, know in common.  Private to these two. */
#ifndef SERVICE_QUERY_QUERY_RUN_H
#define SERVICE_QUERY_QUERY_RUN_H

#include "base/arena.h"
#include "model/limits.h"
#include "service/query/queries.h"

struct query_partition {
	uint64_t id, size;
	struct span key; /* order form */
	bool unseen;     /* by the viewer */
};

struct query_run {
	struct service *service;
	struct store *store;
	struct store_view *view;
	struct store_view *own; /* the view, where it is the query's own */
	uint64_t own_since;
	const struct query *q;
	query_row_fn fn;
	void *arg;
	struct query_end *end;
	struct key_ranges ranges;
	struct span from_pk, from_rk; /* order form; p NULL: none */
	struct arena arena;           /* of the two */

	bool needs_properties;
	const struct value **values; /* by slot; NULL where there is no filter */
	struct value *picked;        /* by slot: of a document that was not decoded */
	struct value pk_value, rk_value, time_value;
	struct entity entity;

	struct span pk_order;                          /* the partition */
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES]; /* UTF-8 */
	const struct key_span *spans;                  /* of RowKeys, to read in one go */
	size_t nspans;
	size_t rows_out; /* of the partition */

	bool moved; /* a unit of work was done */
	bool full;  /* only the next row's key is looked for */
	bool late;  /* to be stopped where that can be done */
	bool done;
	unsigned rows; /* since the last look at the clock */
	size_t bytes;
	unsigned ahead; /* units of work since it is full */
	size_t bytes_out;
	enum err e;
};

/* Whether the viewer sees a row, or (dir) the rows of a partition. */
static inline bool query_run_sees(const struct query_run *r, const struct item *it, bool dir)
{
	const struct query_viewer *v = r->q->viewer;
	return v == NULL || v->sees(v, &it->attrs, dir);
}

/* Nothing more is to be read: it is over, or failed. */
static inline bool query_run_stopped(const struct query_run *r)
{
	return r->done || r->e != ERR_OK;
}

/* Of the query's own view. */
static inline bool query_run_view_is_older(const struct query_run *r, uint64_t now, uint64_t us)
{
	return r->own != NULL && now - r->own_since >= us;
}

/* Whether to stop before the next unit of work, which is not a row of the ranges.  Counts it. */
bool query_run_is_enough(struct query_run *r);
/* It ends here, keys in order form: that is where the next call goes on. */
void query_run_stop_at(struct query_run *r, struct span pk, struct span rk);
/* Whether there may be such a key.  A bound from a filter may be none, and longer than one. */
bool query_run_is_key(struct span order);
/* Reads the rows of a partition that lie in these spans, in order, until it is stopped; r->pk and
 * r->pk_order are the partition's.  from: where in the first span to begin; p NULL: at its
 * beginning.  Errors are left in r->e. */
void query_run_read(struct query_run *r, const struct query_partition *p,
	const struct key_span *spans, size_t n, struct span from);

#endif
