/* SPDX-License-Identifier: MIT
 * Walks the key ranges in order: seeks partitions, and in each its spans of RowKeys.
 *
 * After the last row that may be returned, the walk continues to the next row, where the next call
 * starts.  If that row is far, it returns a key that may lead to no row.
 *
 * A deadline stops between two units of work: a row, a span of RowKeys, a missing PartitionKey.  It
 * never stops before the first one, so that repeated calls make progress.  It stops only if the
 * next unit has a valid key to return.
 *
 * An open view keeps the log on disk from restarting.  So the walk replaces its view between
 * partitions and lists the rest again.  Inside a partition that would split a change set, so the
 * walk stops there as at a deadline.  query_run.c handles each row. */
#include "service/query/queries.h"

#include "base/clock.h"
#include "model/key.h"
#include "model/limits.h"
#include "service/core/admission.h"
#include "service/query/query_run.h"

#include <stdlib.h>

/* The query's own view is replaced at the next partition after this time. */
#define VIEW_US (250u * 1000)
/* Partitions listed by one call.  The first calls list few, for queries that end early. */
#define BATCH_FIRST 4
#define BATCH_MAX 256
#define BATCH_BYTES (64u << 10)
/* A partition with at most so many children per span is scanned instead. */
#define DENSE 8

/* ---- the view ---- */

/* A single row needs no view. */
static bool wants_view(const struct query_run *r)
{
	return r->end->plan != KEY_PLAN_NOTHING && r->end->plan != KEY_PLAN_POINT;
}

static enum err open_view(struct query_run *r)
{
	enum err e = store_view_open(r->store, &r->own);
	if (e != ERR_OK)
		r->own = NULL;
	r->own_since = clock_mono_us();
	r->view = r->own;
	return e;
}

static void close_view(struct query_run *r)
{
	store_view_close(r->store, r->own);
	r->own = NULL;
}

static bool view_is_old(const struct query_run *r)
{
	return query_run_view_is_older(r, clock_mono_us(), VIEW_US);
}

/* No data of the old view may be used with the new one. */
static void renew_view(struct query_run *r)
{
	close_view(r);
	r->e = open_view(r);
}

/* ---- partitions ---- */

static bool enter(struct query_run *r, const struct query_partition *p)
{
	if (p->key.n > LIMIT_KEY_BYTES) {
		r->e = ERR_CORRUPT;
		return false;
	}
	r->pk_order = p->key;
	if (p->key.n > 0)
		key_from_order(p->key.p, p->key.n, r->pk);
	return true;
}

/* Returns true if the throttle admits the partition, also for the search of the next row. */
static bool is_admitted(struct query_run *r)
{
	struct span pk = { r->pk, r->pk_order.n };
	if (!r->q->throttled)
		return true;
	enum err e = admission_entities(r->service, r->q->table_id, pk, HEAT_READ, 0, NULL);
	if (e != ERR_OK && r->moved)
		query_run_stop_at(r, r->pk_order, SPAN_LIT(""));
	else
		r->e = e;
	return e == ERR_OK;
}

static void read_rows(
	struct query_run *r, const struct query_partition *p, const struct key_range *range)
{
	const struct key_span *s = range->rk, *end = range->rk + range->nrk;
	struct span from = { 0 };
	if (r->from_pk.p != NULL && r->from_rk.p != NULL && span_eq(r->from_pk, p->key)) {
		from = r->from_rk;
		while (s < end && key_span_compare(s, from) > 0)
			s++;
	}
	while (s < end && !query_run_stopped(r)) {
		bool inside = from.p != NULL && key_span_compare(s, from) == 0;
		size_t left = (size_t)(end - s);
		size_t n = left > 1 && p->size / DENSE <= left ? left : 1;
		/* Before the first span the start of the partition will do.  `inside` is never true
		 * here: it is the first unit of all. */
		struct span lo = s->lo.p != NULL && s != range->rk ? s->lo : SPAN_LIT("");
		if (query_run_is_enough(r) && query_run_is_key(lo)) {
			query_run_stop_at(r, p->key, lo);
			return;
		}
		query_run_read(r, p, s, n, inside ? from : (struct span){ 0 });
		r->moved = true;
		s += n;
	}
}

static void read_partition(
	struct query_run *r, const struct query_partition *p, const struct key_range *range)
{
	if (!enter(r, p))
		return;
	if (p->unseen) {
		if (query_run_is_enough(r))
			query_run_stop_at(r, p->key, SPAN_LIT(""));
		r->moved = true;
		return;
	}
	if (!is_admitted(r))
		return;
	r->rows_out = 0;
	read_rows(r, p, range);
	if (r->rows_out > 0)
		admission_count(r->service, r->q->table_id, span_make(r->pk, r->pk_order.n),
			HEAT_READ, r->rows_out);
}

static void read_one_partition(struct query_run *r, struct span pk, const struct key_range *range)
{
	struct item it = { 0 };
	if (!query_run_is_key(pk))
		return;
	if (query_run_is_enough(r)) {
		query_run_stop_at(r, pk, SPAN_LIT(""));
		return;
	}
	if (view_is_old(r))
		renew_view(r);
	if (query_run_stopped(r))
		return;
	enum err e =
		store_child(r->store, r->view, r->q->table_id, CLASS_KEYED, pk, WANT_ATTRS, &it);
	struct query_partition p = { .id = it.id, .size = it.size, .key = pk };
	p.unseen = e == ERR_OK && !query_run_sees(r, &it, true);
	if (e == ERR_OK)
		read_partition(r, &p, range);
	else if (e != ERR_NOT_FOUND)
		r->e = e;
	item_fini(&it);
	r->moved = true;
}

/* Partitions between two calls of the store. */
struct batch {
	const struct query_run *run;
	struct query_partition v[BATCH_MAX];
	size_t n, max;
	const struct key_span *pk;
	struct arena keys;
	size_t bytes;
	bool more;
	enum err e;
};

static bool on_partition(void *arg, const struct item *it)
{
	struct batch *b = arg;
	if (key_span_compare(b->pk, it->key) > 0)
		return false;
	struct span key = arena_copy(&b->keys, it->key);
	if (key.p == NULL) {
		b->e = ERR_NO_MEMORY;
		return false;
	}
	b->v[b->n++] = (struct query_partition){ .id = it->id,
		.size = it->size,
		.key = key,
		.unseen = !query_run_sees(b->run, it, true) };
	b->bytes += key.n;
	b->more = b->n == b->max || b->bytes >= BATCH_BYTES;
	return !b->more;
}

/* Lists the next partitions behind `after`. */
static void fill(struct query_run *r, struct batch *b, const struct buf *after, bool inclusive)
{
	arena_reset(&b->keys);
	b->n = b->bytes = 0;
	b->more = false;
	b->max = b->max == 0 ? BATCH_FIRST : b->max * 4 < BATCH_MAX ? b->max * 4 : BATCH_MAX;
	enum err e = store_list(r->store, r->view, r->q->table_id, CLASS_KEYED, buf_span(after),
		inclusive, WANT_ATTRS, on_partition, b);
	if (e == ERR_OK)
		e = b->e;
	if (e != ERR_OK)
		r->e = e;
}

/* With a new view the rest must be listed again: b->more. */
static void read_batch(
	struct query_run *r, struct batch *b, const struct key_range *range, struct buf *after)
{
	for (size_t i = 0; i < b->n && !query_run_stopped(r); i++) {
		if (i > 0 && view_is_old(r)) {
			b->more = true;
			return;
		}
		read_partition(r, &b->v[i], range);
		buf_clear(after);
		buf_add_span(after, b->v[i].key);
		if (!buf_ok(after))
			r->e = ERR_NO_MEMORY;
	}
}

static void read_partitions(
	struct query_run *r, struct batch *b, const struct key_range *range, struct buf *after)
{
	bool inclusive = !range->pk.lo_open;
	struct span start = range->pk.lo;
	if (r->from_pk.p != NULL && key_span_compare(&range->pk, r->from_pk) == 0) {
		start = r->from_pk;
		inclusive = true;
	}
	b->run = r;
	b->pk = &range->pk;
	b->max = 0;
	buf_clear(after);
	buf_add_span(after, start);
	if (!buf_reserve(after, 1)) /* gives an empty key a p that is not NULL */
		r->e = ERR_NO_MEMORY;
	do {
		if (!query_run_stopped(r) && view_is_old(r))
			renew_view(r);
		if (!query_run_stopped(r))
			fill(r, b, after, inclusive);
		if (!query_run_stopped(r))
			read_batch(r, b, range, after);
		inclusive = false;
	} while (b->more && !query_run_stopped(r));
	r->moved = true;
}

static enum err walk(struct query_run *r)
{
	struct buf after = BUF_INIT(1u << 20);
	struct batch *b = calloc(1, sizeof(*b));
	if (b == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < r->ranges.n && !query_run_stopped(r); i++) {
		const struct key_range *range = &r->ranges.ranges[i];
		if (r->from_pk.p != NULL && key_span_compare(&range->pk, r->from_pk) > 0)
			continue;
		if (key_span_is_point(&range->pk))
			read_one_partition(r, range->pk.hi, range);
		else
			read_partitions(r, b, range, &after);
	}
	arena_fini(&b->keys);
	free(b);
	buf_fini(&after);
	return r->e;
}

/* ---- the whole query ---- */

static enum err plan(struct query_run *r)
{
	const struct query *q = r->q;
	enum err e = q->filter != NULL ? key_ranges_of_filter(q->filter, &r->ranges)
				       : key_ranges_all(&r->ranges);
	if (e == ERR_OK && q->limit != NULL)
		e = key_ranges_intersect(&r->ranges, q->limit);
	if (e == ERR_OK)
		r->end->plan = key_ranges_plan(&r->ranges);
	return e;
}

static enum err bind_filter(struct query_run *r)
{
	const struct filter *f = r->q->filter;
	if (f == NULL || f->root == NULL)
		return ERR_OK;
	r->needs_properties = filter_needs_properties(f);
	r->uses_row_key = filter_uses(f, FILTER_SLOT_RK);
	r->values = calloc(f->nslots, sizeof(struct value *));
	r->picked = calloc(f->nslots, sizeof(*r->picked));
	if (r->values == NULL || r->picked == NULL)
		return ERR_NO_MEMORY;
	r->pk_value.type = r->rk_value.type = EDM_STRING;
	r->time_value.type = EDM_DATETIME;
	r->values[FILTER_SLOT_PK] = &r->pk_value;
	r->values[FILTER_SLOT_RK] = &r->rk_value;
	r->values[FILTER_SLOT_TIMESTAMP] = &r->time_value;
	return ERR_OK;
}

static enum err order_from(struct query_run *r, struct span key, struct span *ret)
{
	char *order = arena_alloc(&r->arena, key.n + 1);
	if (order == NULL)
		return ERR_NO_MEMORY;
	if (key.n > 0)
		key_to_order(key.p, key.n, order);
	*ret = span_make(order, key.n);
	return ERR_OK;
}

static enum err start_from(struct query_run *r)
{
	const struct query *q = r->q;
	enum err e = ERR_OK;
	if (q->from_pk.p == NULL)
		return ERR_OK;
	e = order_from(r, q->from_pk, &r->from_pk);
	if (e == ERR_OK && q->from_rk.p != NULL)
		e = order_from(r, q->from_rk, &r->from_rk);
	return e;
}

enum err query_run(struct service *s, struct store_view *v, const struct query *q, query_row_fn fn,
	void *arg, struct query_end *ret)
{
	*ret = (struct query_end){
		.next_pk = BUF_INIT(LIMIT_KEY_BYTES + 1),
		.next_rk = BUF_INIT(LIMIT_KEY_BYTES + 1),
	};
	struct query_run r = {
		.service = s,
		.store = service_store(s),
		.view = v,
		.q = q,
		.fn = fn,
		.arg = arg,
		.end = ret,
	};
	enum err e = plan(&r);
	if (e == ERR_OK)
		e = bind_filter(&r);
	if (e == ERR_OK)
		e = start_from(&r);
	if (e == ERR_OK && v == NULL && wants_view(&r))
		e = open_view(&r);
	if (e == ERR_OK)
		e = query_run_can_find(&r) ? query_run_find(&r) : walk(&r);
	if (e == ERR_NOT_SUPPORTED)
		e = walk(&r);
	close_view(&r);
	key_ranges_fini(&r.ranges);
	entity_fini(&r.entity);
	arena_fini(&r.arena);
	free(r.values);
	free(r.picked);
	return e;
}

void query_end_fini(struct query_end *e)
{
	buf_fini(&e->next_pk);
	buf_fini(&e->next_rk);
}
