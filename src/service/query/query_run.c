/* SPDX-License-Identifier: MIT
 * Handles each row of a query: checks the limits, evaluates the filter, returns the row. */
#include "service/query/query_run.h"

#include "base/clock.h"
#include "codec/entity_json.h"
#include "model/key.h"

/* The clock is checked after so many rows, or bytes of documents. */
#define CLOCK_ROWS 64
#define CLOCK_BYTES (256u << 10)
/* Units of work in search of the next row's key. */
#define LOOK_AHEAD 64
/* An own view that is older ends the page. */
#define VIEW_MAX_US (1000u * 1000)

/* ---- stopping ---- */

static bool out_of_time(struct query_run *r)
{
	if (r->q->deadline_us == 0 || !r->moved)
		return false;
	uint64_t now = clock_mono_us();
	r->rows = 0;
	r->bytes = 0;
	r->late =
		r->late || now >= r->q->deadline_us || query_run_view_is_older(r, now, VIEW_MAX_US);
	return r->late;
}

bool query_run_is_enough(struct query_run *r)
{
	r->ahead += r->full;
	return r->ahead > LOOK_AHEAD || out_of_time(r);
}

/* Writes the key in UTF-8.  Its data is not NULL even if it is empty. */
static void name_key(struct buf *out, struct span order)
{
	buf_clear(out);
	if (buf_reserve(out, order.n + 1) && order.n > 0 && buf_resize(out, order.n))
		key_from_order(order.p, order.n, out->data);
}

void query_run_stop_at(struct query_run *r, struct span pk, struct span rk)
{
	name_key(&r->end->next_pk, pk);
	name_key(&r->end->next_rk, rk);
	if (!buf_ok(&r->end->next_pk) || !buf_ok(&r->end->next_rk))
		r->e = ERR_NO_MEMORY;
	r->end->more = true;
	r->done = true;
}

bool query_run_is_key(struct span order)
{
	char key[LIMIT_KEY_BYTES];
	if (order.n > sizeof(key))
		return false;
	if (order.n > 0)
		key_from_order(order.p, order.n, key);
	return key_check(span_make(key, order.n), "key", NULL) == ERR_OK;
}

/* ---- rows ---- */

static bool decode(struct query_run *r, const struct item *it, struct span pk, struct span rk)
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

static void set_fixed(struct query_run *r, const struct item *it, struct span pk, struct span rk)
{
	r->pk_value.bytes = pk;
	r->rk_value.bytes = rk;
	r->time_value.ticks = it->version;
}

/* Binds the properties of a canonical document. */
static enum err bind_stored(struct query_run *r, const struct item *it)
{
	arena_reset(&r->entity.arena);
	return filter_bind_document(r->q->filter, it->body, &r->entity.arena, r->picked, r->values);
}

/* Binds the properties that the filter names.  Usually the document need not be decoded. */
static bool bind_properties(struct query_run *r, const struct item *it, struct span pk,
	struct span rk, bool *ret_decoded)
{
	if ((it->flags & ITEM_CANONICAL) != 0 && bind_stored(r, it) == ERR_OK)
		return true;
	*ret_decoded = decode(r, it, pk, rk);
	if (*ret_decoded)
		filter_bind(r->q->filter, &r->entity, r->values);
	return *ret_decoded;
}

static bool matches(struct query_run *r, const struct item *it, struct span pk, struct span rk,
	bool *ret_decoded)
{
	*ret_decoded = false;
	if (r->values == NULL)
		return true;
	set_fixed(r, it, pk, rk);
	if (r->needs_properties && !bind_properties(r, it, pk, rk, ret_decoded))
		return false;
	if (r->q->mismatch != NULL)
		filter_mismatch_row(r->q->mismatch, r->values);
	return filter_eval(r->q->filter, r->values);
}

static void hand_out(struct query_run *r, const struct query_row *row)
{
	const struct query *q = r->q;
	r->end->matched++;
	r->rows_out++;
	r->bytes_out += row->document.n;
	r->full = !r->fn(r->arg, row) || (q->top != 0 && r->end->matched >= q->top) ||
		(q->max_bytes != 0 && r->bytes_out >= q->max_bytes);
}

static void look_at(struct query_run *r, const struct item *it)
{
	struct span pk = { r->pk, r->pk_order.n }, rk = { r->rk, it->key.n };
	if (it->key.n > 0)
		key_from_order(it->key.p, it->key.n, r->rk);
	bool decoded, match = matches(r, it, pk, rk, &decoded);
	if (r->e != ERR_OK)
		return;
	r->end->looked_at++;
	r->moved = true;
	r->matched = match;
	if (!match)
		return;
	if (r->q->decode && !decoded) {
		decoded = decode(r, it, pk, rk);
		if (!decoded)
			return;
	}
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

/* Counts what was read, whether it matches or not. */
static bool count(struct query_run *r, const struct item *it)
{
	if (it->key.n > LIMIT_KEY_BYTES) {
		r->e = ERR_CORRUPT;
		return false;
	}
	r->rows++;
	r->bytes += it->body.n;
	return true;
}

static bool is_late(struct query_run *r)
{
	bool look = r->late || r->rows > CLOCK_ROWS || r->bytes > CLOCK_BYTES;
	return look && out_of_time(r);
}

void query_run_take(struct query_run *r, const struct item *it)
{
	if (r->full)
		query_run_stop_at(r, r->pk_order, it->key);
	else if (!item_is_empty_row(it) && query_run_sees(r, it, false))
		look_at(r, it);
	else
		r->moved = true;
}

/* Takes a row in the ranges.  Returns false to stop. */
static bool take_row(struct query_run *r, const struct item *it)
{
	if (!count(r, it))
		return false;
	if (is_late(r))
		query_run_stop_at(r, r->pk_order, it->key);
	else
		query_run_take(r, it);
	return !query_run_stopped(r);
}

/* Takes a row between the spans. */
static bool pass_row(struct query_run *r, const struct item *it)
{
	if (!count(r, it))
		return false;
	r->ahead += r->full;
	if (r->ahead > LOOK_AHEAD || is_late(r))
		query_run_stop_at(r, r->pk_order, it->key);
	r->moved = true;
	return !query_run_stopped(r);
}

static bool on_row(void *arg, const struct item *it)
{
	struct query_run *r = arg;
	int c = 1;
	while (r->nspans > 0 && (c = key_span_compare(r->spans, it->key)) > 0) {
		r->spans++;
		r->nspans--;
	}
	if (c > 0)
		return false;
	return c < 0 ? pass_row(r, it) : take_row(r, it);
}

/* ---- rows that a scan leaves out ---- */

static bool may_skip(const struct query_run *r)
{
	return r->needs_properties && r->q->requester == NULL && r->q->mismatch == NULL;
}

static bool is_clock_due(const struct query_run *r)
{
	return r->q->deadline_us != 0 && (r->rows >= CLOCK_ROWS || r->bytes > CLOCK_BYTES);
}

/* Returns true if on_row() would only evaluate the filter, and probably find no match.  The row behind a
 * match probably matches too, and needs no second evaluation. */
static bool is_plain_row(const struct query_run *r, const struct item *it)
{
	return !query_run_stopped(r) && !r->full && !r->matched && !r->late && !is_clock_due(r) &&
		(it->flags & ITEM_CANONICAL) != 0 && it->key.n <= LIMIT_KEY_BYTES &&
		r->nspans > 0 && key_span_compare(r->spans, it->key) == 0;
}

/* Returns true for a row that does not match, and counts it.  on_row() handles all others. */
static bool skips(void *arg, const struct item *it)
{
	struct query_run *r = arg;
	if (!is_plain_row(r, it))
		return false;
	if (r->uses_row_key && it->key.n > 0)
		key_from_order(it->key.p, it->key.n, r->rk);
	set_fixed(r, it, span_make(r->pk, r->pk_order.n), span_make(r->rk, it->key.n));
	if (bind_stored(r, it) != ERR_OK || filter_eval(r->q->filter, r->values))
		return false;
	r->rows++;
	r->bytes += it->body.n;
	r->end->looked_at++;
	r->moved = true;
	return true;
}

static unsigned wanted(const struct query_run *r)
{
	return r->q->no_documents && !r->needs_properties ? WANT_ATTRS : WANT_BODY;
}

static void read_point(struct query_run *r, const struct query_partition *p, struct span rk)
{
	struct item it = { 0 };
	if (!query_run_is_key(rk))
		return;
	enum err e = store_child(r->store, r->view, p->id, CLASS_KEYED, rk, wanted(r), &it);
	if (e == ERR_OK)
		(void)take_row(r, &it);
	else if (e != ERR_NOT_FOUND)
		r->e = e;
	item_fini(&it);
}

void query_run_read(struct query_run *r, const struct query_partition *p,
	const struct key_span *spans, size_t n, struct span from)
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
	enum err e = may_skip(r) ? store_scan(r->store, r->view, p->id, CLASS_KEYED, from,
					   inclusive, skips, on_row, r)
				 : store_list(r->store, r->view, p->id, CLASS_KEYED, from,
					   inclusive, wanted(r), on_row, r);
	if (e != ERR_OK)
		r->e = e;
}
