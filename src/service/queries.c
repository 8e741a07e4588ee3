/* SPDX-License-Identifier: MIT
 * Queries walk the key ranges in order: partitions by seek, in each its spans of RowKeys.
 * After the last row that may be handed out the walk goes on to the next row, whose key is
 * where the next call starts; if that is far, to a place that may lead to nothing.
 * A deadline stops between two units of work (a row, a span of RowKeys, a PartitionKey that
 * is not there), and only after the first one, so that whoever comes again with next_pk and
 * next_rk always gets on.  It stops only where the next unit has a legal key to name.
 * An open view holds the store's log back.  So a walk changes its view between partitions,
 * and forgets then what it knows of those to come; within one, where a change set would come
 * apart, it stops as at a deadline. */
#include "service/queries.h"

#include "base/clock.h"
#include "codec/entity_json.h"
#include "model/key.h"
#include "model/limits.h"
#include "service/admission.h"

#include <stdlib.h>
#include <string.h>

/* The clock is looked at after so many rows or so many bytes of documents. */
#define CLOCK_ROWS 64
#define CLOCK_BYTES (256u << 10)
/* Units of work that find nothing, for the next row's key. */
#define LOOK_AHEAD 64
/* A view of the query's own is changed at the next partition, or ends the page. */
#define VIEW_US (250u * 1000)
#define VIEW_MAX_US (1000u * 1000)
/* Partitions listed by one call; the first calls list few, for queries that end early. */
#define BATCH_FIRST 4
#define BATCH_MAX 256
#define BATCH_BYTES (64u << 10)
/* A partition with at most so many children for each span is read through instead. */
#define DENSE 8

struct partition {
	uint64_t id, size;
	struct span key; /* order form */
};

struct run {
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

/* ---- stopping ---- */

static bool stopped(const struct run *r)
{
	return r->done || r->e != ERR_OK;
}

static bool view_is_older(const struct run *r, uint64_t now, uint64_t us)
{
	return r->own != NULL && now - r->own_since >= us;
}

static bool out_of_time(struct run *r)
{
	if (r->q->deadline_us == 0 || !r->moved)
		return false;
	uint64_t now = clock_mono_us();
	r->rows = 0;
	r->bytes = 0;
	r->late = r->late || now >= r->q->deadline_us || view_is_older(r, now, VIEW_MAX_US);
	return r->late;
}

/* Asked before each unit of work that is not a row of the ranges. */
static bool is_enough(struct run *r)
{
	r->ahead += r->full;
	return r->ahead > LOOK_AHEAD || out_of_time(r);
}

/* The key in UTF-8, with a place of its own even where it is empty. */
static void name_key(struct buf *out, struct span order)
{
	buf_clear(out);
	if (buf_reserve(out, order.n + 1) && order.n > 0 && buf_resize(out, order.n))
		key_from_order(order.p, order.n, out->data);
}

static void stop_at(struct run *r, struct span pk, struct span rk)
{
	name_key(&r->end->next_pk, pk);
	name_key(&r->end->next_rk, rk);
	if (!buf_ok(&r->end->next_pk) || !buf_ok(&r->end->next_rk))
		r->e = ERR_NO_MEMORY;
	r->end->more = true;
	r->done = true;
}

/* A bound from a filter may be no key at all, and longer than one. */
static bool is_key(struct span order)
{
	char key[LIMIT_KEY_BYTES];
	if (order.n > sizeof(key))
		return false;
	if (order.n > 0)
		key_from_order(order.p, order.n, key);
	return key_check(span_make(key, order.n), "key", NULL) == ERR_OK;
}

/* ---- the view ---- */

/* One row is consistent in itself. */
static bool wants_view(const struct run *r)
{
	struct store_info info;
	if (r->end->plan == KEY_PLAN_NOTHING || r->end->plan == KEY_PLAN_POINT)
		return false;
	store_info(r->store, &info);
	return info.abilities & STORE_CAN_VIEW;
}

static enum err open_view(struct run *r)
{
	enum err e = store_view_open(r->store, &r->own);
	if (e != ERR_OK)
		r->own = NULL;
	r->own_since = clock_mono_us();
	r->view = r->own;
	return e;
}

static void close_view(struct run *r)
{
	store_view_close(r->store, r->own);
	r->own = NULL;
}

static bool view_is_old(const struct run *r)
{
	return view_is_older(r, clock_mono_us(), VIEW_US);
}

/* Nothing that was read in the old one may be used in the new one. */
static void renew_view(struct run *r)
{
	close_view(r);
	r->e = open_view(r);
}

/* ---- rows ---- */

static bool decode(struct run *r, const struct item *it, struct span pk, struct span rk)
{
	struct entity *e = &r->entity;
	enum err err = entity_json_decode(it->body, ENTITY_JSON_FILE, e, NULL, NULL);
	if (err != ERR_OK) {
		r->e = err == ERR_NO_MEMORY ? err : ERR_CORRUPT;
		return false;
	}
	e->pk = pk;
	e->rk = rk;
	e->has_pk = e->has_rk = true;
	e->timestamp = it->version;
	return true;
}

static bool matches(struct run *r, const struct item *it, struct span pk, struct span rk)
{
	if (r->values == NULL)
		return true;
	r->pk_value.bytes = pk;
	r->rk_value.bytes = rk;
	r->time_value.ticks = it->version;
	if (r->needs_properties)
		filter_bind(r->q->filter, &r->entity, r->values);
	return filter_eval(r->q->filter, r->values);
}

static void hand_out(struct run *r, const struct query_row *row)
{
	const struct query *q = r->q;
	r->end->matched++;
	r->rows_out++;
	r->bytes_out += row->document.n;
	r->full = !r->fn(r->arg, row) || (q->top != 0 && r->end->matched >= q->top) ||
		(q->max_bytes != 0 && r->bytes_out >= q->max_bytes);
}

static void look_at(struct run *r, const struct item *it)
{
	struct span pk = { r->pk, r->pk_order.n }, rk = { r->rk, it->key.n };
	if (it->key.n > 0)
		key_from_order(it->key.p, it->key.n, r->rk);
	if (r->needs_properties && !decode(r, it, pk, rk))
		return;
	r->end->looked_at++;
	r->moved = true;
	if (!matches(r, it, pk, rk))
		return;
	bool decoded = r->needs_properties || r->q->decode;
	if (decoded && !r->needs_properties && !decode(r, it, pk, rk))
		return;
	struct query_row row = {
		.pk = pk,
		.rk = rk,
		.version = it->version,
		.document = it->body,
		.flags = it->flags,
		.item = it,
		.entity = decoded ? &r->entity : NULL,
	};
	hand_out(r, &row);
}

/* What was read counts, wanted or not. */
static bool count(struct run *r, const struct item *it)
{
	if (it->key.n > LIMIT_KEY_BYTES) {
		r->e = ERR_CORRUPT;
		return false;
	}
	r->rows++;
	r->bytes += it->body.n;
	return true;
}

static bool is_late(struct run *r)
{
	bool look = r->late || r->rows > CLOCK_ROWS || r->bytes > CLOCK_BYTES;
	return look && out_of_time(r);
}

/* A row in the ranges.  False: no more. */
static bool take_row(struct run *r, const struct item *it)
{
	if (!count(r, it))
		return false;
	if (r->full || is_late(r))
		stop_at(r, r->pk_order, it->key);
	else
		look_at(r, it);
	return !stopped(r);
}

/* A row between the spans. */
static bool pass_row(struct run *r, const struct item *it)
{
	if (!count(r, it))
		return false;
	r->ahead += r->full;
	if (r->ahead > LOOK_AHEAD || is_late(r))
		stop_at(r, r->pk_order, it->key);
	r->moved = true;
	return !stopped(r);
}

static bool on_row(void *arg, const struct item *it)
{
	struct run *r = arg;
	int c = 1;
	while (r->nspans > 0 && (c = key_span_compare(r->spans, it->key)) > 0) {
		r->spans++;
		r->nspans--;
	}
	if (c > 0)
		return false;
	return c < 0 ? pass_row(r, it) : take_row(r, it);
}

static void read_point(struct run *r, const struct partition *p, struct span rk)
{
	struct item it = { 0 };
	if (!is_key(rk))
		return;
	enum err e = store_child(r->store, r->view, p->id, CLASS_KEYED, rk, WANT_BODY, &it);
	if (e == ERR_OK)
		(void)take_row(r, &it);
	else if (e != ERR_NOT_FOUND)
		r->e = e;
	item_fini(&it);
}

/* from.p NULL: from the first span's beginning. */
static void read_spans(struct run *r, const struct partition *p, const struct key_span *spans,
	size_t n, struct span from)
{
	if (n == 1 && key_span_is_point(spans)) {
		read_point(r, p, spans->hi);
		return;
	}
	bool inclusive = true;
	if (from.p == NULL) {
		from = spans->lo;
		inclusive = !spans->lo_open;
	}
	r->spans = spans;
	r->nspans = n;
	enum err e = store_list(
		r->store, r->view, p->id, CLASS_KEYED, from, inclusive, WANT_BODY, on_row, r);
	if (e != ERR_OK)
		r->e = e;
}

/* ---- partitions ---- */

static bool enter(struct run *r, const struct partition *p)
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

/* Whether the partition may be read now; one that is only looked at for the next row's key,
 * too. */
static bool is_admitted(struct run *r)
{
	struct span pk = { r->pk, r->pk_order.n };
	if (!r->q->throttled)
		return true;
	enum err e = admission_entities(r->service, r->q->table_id, pk, HEAT_READ, 0, NULL);
	if (e != ERR_OK && r->moved)
		stop_at(r, r->pk_order, SPAN_LIT(""));
	else
		r->e = e;
	return e == ERR_OK;
}

static void read_rows(struct run *r, const struct partition *p, const struct key_range *range)
{
	const struct key_span *s = range->rk, *end = range->rk + range->nrk;
	struct span from = { 0 };
	if (r->from_pk.p != NULL && r->from_rk.p != NULL && span_eq(r->from_pk, p->key)) {
		from = r->from_rk;
		while (s < end && key_span_compare(s, from) > 0)
			s++;
	}
	while (s < end && !stopped(r)) {
		bool inside = from.p != NULL && key_span_compare(s, from) == 0;
		size_t left = (size_t)(end - s);
		size_t n = left > 1 && p->size / DENSE <= left ? left : 1;
		/* Before its first span, the partition itself will do. */
		struct span lo = s->lo.p != NULL && s != range->rk ? s->lo : SPAN_LIT("");
		if (is_enough(r) && is_key(lo)) {
			stop_at(r, p->key, lo); /* never inside: that is the first unit of all */
			return;
		}
		read_spans(r, p, s, n, inside ? from : (struct span){ 0 });
		r->moved = true;
		s += n;
	}
}

static void read_partition(struct run *r, const struct partition *p, const struct key_range *range)
{
	if (!enter(r, p) || !is_admitted(r))
		return;
	r->rows_out = 0;
	read_rows(r, p, range);
	if (r->rows_out > 0)
		admission_count(r->service, r->q->table_id, span_make(r->pk, r->pk_order.n),
			HEAT_READ, r->rows_out);
}

static void read_one_partition(struct run *r, struct span pk, const struct key_range *range)
{
	struct item it = { 0 };
	if (!is_key(pk))
		return;
	if (is_enough(r)) {
		stop_at(r, pk, SPAN_LIT(""));
		return;
	}
	if (view_is_old(r))
		renew_view(r);
	if (stopped(r))
		return;
	enum err e =
		store_child(r->store, r->view, r->q->table_id, CLASS_KEYED, pk, WANT_ATTRS, &it);
	struct partition p = { .id = it.id, .size = it.size, .key = pk };
	if (e == ERR_OK)
		read_partition(r, &p, range);
	else if (e != ERR_NOT_FOUND)
		r->e = e;
	item_fini(&it);
	r->moved = true;
}

/* Partitions in between two calls of the store. */
struct batch {
	struct partition v[BATCH_MAX];
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
	b->v[b->n++] = (struct partition){ .id = it->id, .size = it->size, .key = key };
	b->bytes += key.n;
	b->more = b->n == b->max || b->bytes >= BATCH_BYTES;
	return !b->more;
}

/* The next partitions behind `after`. */
static void fill(struct run *r, struct batch *b, const struct buf *after, bool inclusive)
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

/* Those that are left for another view are to be listed anew: b->more. */
static void read_batch(
	struct run *r, struct batch *b, const struct key_range *range, struct buf *after)
{
	for (size_t i = 0; i < b->n && !stopped(r); i++) {
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
	struct run *r, struct batch *b, const struct key_range *range, struct buf *after)
{
	bool inclusive = !range->pk.lo_open;
	struct span start = range->pk.lo;
	if (r->from_pk.p != NULL && key_span_compare(&range->pk, r->from_pk) == 0) {
		start = r->from_pk;
		inclusive = true;
	}
	b->pk = &range->pk;
	b->max = 0;
	buf_clear(after);
	buf_add_span(after, start);
	if (!buf_reserve(after, 1)) /* so that an empty key is one, too */
		r->e = ERR_NO_MEMORY;
	do {
		if (!stopped(r) && view_is_old(r))
			renew_view(r);
		if (!stopped(r))
			fill(r, b, after, inclusive);
		if (!stopped(r))
			read_batch(r, b, range, after);
		inclusive = false;
	} while (b->more && !stopped(r));
	r->moved = true;
}

static enum err walk(struct run *r)
{
	struct buf after = BUF_INIT(1u << 20);
	struct batch *b = calloc(1, sizeof(*b));
	if (b == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < r->ranges.n && !stopped(r); i++) {
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

/* ---- the whole ---- */

static enum err plan(struct run *r)
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

static enum err bind_filter(struct run *r)
{
	const struct filter *f = r->q->filter;
	if (f == NULL || f->root == NULL)
		return ERR_OK;
	r->needs_properties = filter_needs_properties(f);
	r->values = calloc(f->nslots, sizeof(struct value *));
	if (r->values == NULL)
		return ERR_NO_MEMORY;
	r->pk_value.type = r->rk_value.type = EDM_STRING;
	r->time_value.type = EDM_DATETIME;
	r->values[FILTER_SLOT_PK] = &r->pk_value;
	r->values[FILTER_SLOT_RK] = &r->rk_value;
	r->values[FILTER_SLOT_TIMESTAMP] = &r->time_value;
	return ERR_OK;
}

static enum err order_from(struct run *r, struct span key, struct span *ret)
{
	char *order = arena_alloc(&r->arena, key.n + 1);
	if (order == NULL)
		return ERR_NO_MEMORY;
	if (key.n > 0)
		key_to_order(key.p, key.n, order);
	*ret = span_make(order, key.n);
	return ERR_OK;
}

static enum err start_from(struct run *r)
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
	struct run r = {
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
		e = walk(&r);
	close_view(&r);
	key_ranges_fini(&r.ranges);
	entity_fini(&r.entity);
	arena_fini(&r.arena);
	free(r.values);
	return e;
}

void query_end_fini(struct query_end *e)
{
	buf_fini(&e->next_pk);
	buf_fini(&e->next_rk);
}
