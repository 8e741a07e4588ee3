/* SPDX-License-Identifier: MIT
 * Reads the rows of a query where the engine evaluates filters (STORE_FINDS): it gives those that match, and
 * query_run.c checks each again. */
#include "base/clock.h"
#include "model/key.h"
#include "service/query/query_run.h"

#include <limits.h>
#include <string.h>

#define FILTER_MAX ((size_t)16 << 10)
#define SELECT_MAX ((size_t)16 << 10)

struct found_rows {
	struct query_run *r;
	char pk[LIMIT_KEY_BYTES]; /* order form */
	bool any;                 /* pk is set */
	bool unseen;              /* the requester may not see the rows of pk */
};

bool query_run_can_find(const struct query_run *r)
{
	const struct query *q = r->q;
	return service_can(r->service, STORE_FINDS) && r->view == NULL && !q->throttled &&
		q->mismatch == NULL && q->filter != NULL && q->filter->root != NULL &&
		r->end->plan > KEY_PLAN_POINT;
}

static void enter(struct found_rows *f, const struct item *partition)
{
	struct query_run *r = f->r;
	struct span pk = partition->key;
	if (f->any && span_eq(r->pk_order, pk))
		return;
	if (pk.n > 0)
		memcpy(f->pk, pk.p, pk.n);
	r->pk_order = span_make(f->pk, pk.n);
	if (pk.n > 0)
		key_from_order(f->pk, pk.n, r->pk);
	f->any = true;
	f->unseen = !query_run_sees(r, partition, true);
}

static bool on_row(void *arg, const struct item *partition, const struct item *row)
{
	struct found_rows *f = arg;
	struct query_run *r = f->r;
	if (partition->key.n > LIMIT_KEY_BYTES || row->key.n > LIMIT_KEY_BYTES) {
		r->e = ERR_CORRUPT;
		return false;
	}
	enter(f, partition);
	r->moved = true;
	if (!f->unseen && key_ranges_hold(&r->ranges, r->pk_order, row->key))
		query_run_take(r, row);
	return !query_run_stopped(r);
}

/* All keys that the filter needs, but no others. */
static void add_select(const struct query_run *r, struct buf *out)
{
	const struct filter *f = r->q->filter;
	buf_add_str(out, "PartitionKey,RowKey,Timestamp");
	for (unsigned i = FILTER_SLOT_NAMED; i < f->nslots; i++) {
		buf_add_char(out, ',');
		buf_add_span(out, f->names[i]);
	}
}

static struct span not_null(struct span key)
{
	return key.p != NULL ? key : SPAN_LIT("");
}

/* From the first key to the last of the ranges. */
static void set_places(const struct query_run *r, struct store_find *q)
{
	const struct key_range *first = &r->ranges.ranges[0], *last = first + r->ranges.n - 1;
	q->from_pk = not_null(first->pk.lo);
	q->from_rk = key_span_is_point(&first->pk) ? not_null(first->rk[0].lo) : SPAN_LIT("");
	if (r->from_pk.p != NULL && span_cmp(r->from_pk, q->from_pk) >= 0) {
		q->from_pk = r->from_pk;
		q->from_rk = not_null(r->from_rk);
	}
	q->until_pk = last->pk.hi;
	if (key_span_is_point(&last->pk))
		q->until_rk = last->rk[last->nrk - 1].hi;
}

/* Between two answers of the engine. */
static void go_on(struct query_run *r, struct store_find *q, const struct store_found *found)
{
	bool late = r->q->deadline_us != 0 && clock_mono_us() >= r->q->deadline_us;
	q->from_pk = not_null(buf_span(&found->next_pk));
	q->from_rk = not_null(buf_span(&found->next_rk));
	if (!buf_ok(&found->next_pk) || !buf_ok(&found->next_rk))
		r->e = ERR_NO_MEMORY;
	else if (r->full || late)
		query_run_stop_at(r, q->from_pk, q->from_rk);
}

static void find_on(struct query_run *r, struct store_find *q)
{
	struct found_rows f = { .r = r };
	struct store_found found = { 0 }, before = { 0 };
	bool more = true;
	while (more && !query_run_stopped(r)) {
		enum err e = store_find(r->store, q, on_row, &f, &found);
		if (e == ERR_NOT_SUPPORTED && r->moved)
			query_run_stop_at(r, q->from_pk, q->from_rk); /* the next call walks */
		else if (e != ERR_OK)
			r->e = e;
		more = found.more;
		if (more && !query_run_stopped(r))
			go_on(r, q, &found);
		buf_fini(&before.next_pk);
		buf_fini(&before.next_rk);
		before = found; /* q borrows the keys */
	}
	buf_fini(&before.next_pk);
	buf_fini(&before.next_rk);
}

enum err query_run_find(struct query_run *r)
{
	struct buf filter = BUF_INIT(FILTER_MAX), select = BUF_INIT(SELECT_MAX);
	struct store_find q = { .table = r->q->table_id };
	filter_print(r->q->filter, &filter);
	if (r->q->keys_only)
		add_select(r, &select);
	q.filter = buf_span(&filter);
	q.select = buf_span(&select);
	q.most = r->q->top < UINT_MAX ? (unsigned)r->q->top : 0;
	set_places(r, &q);
	if (buf_ok(&filter) && buf_ok(&select))
		find_on(r, &q);
	else
		r->e = ERR_NOT_SUPPORTED;
	buf_fini(&filter);
	buf_fini(&select);
	enum err e = r->e;
	if (e == ERR_NOT_SUPPORTED)
		r->e = ERR_OK;
	return e;
}
