/* SPDX-License-Identifier: MIT */
#include "cloudstore/find.h"

#include "base/clock.h"
#include "base/may_block.h"
#include "cloudstore/find_filter.h"
#include "cloudstore/outage.h"
#include "cloudstore/question.h"
#include "codec/entity_json.h"
#include "model/key.h"

#define BEHIND '\x01' /* at the end of a key */

struct finding {
	struct cloudstore *s;
	const struct store_find *q;
	struct item table;
	struct buf filter; /* with the bounds */
	struct refresh r;
	struct found_part part;
	struct item partition; /* whose rows come; kind ITEM_NONE: none yet */
	unsigned n;            /* rows of the response */
};

static unsigned most_of(const struct store_find *q)
{
	return q->most > 0 && q->most < PAGE_ROWS ? q->most : PAGE_ROWS;
}

/* The service may know less of filters than rowfs. */
static enum err filter_error(enum err e)
{
	return e != ERR_OK && err_http(e) == 400 ? ERR_NOT_SUPPORTED : e;
}

/* A row that stands before the place where the caller's rows begin, or where the last one was, shows that the
 * service evaluates no bounds or has another order.  To go on behind it would never end. */
static bool is_in_order(const struct finding *f, struct span pk, struct span rk)
{
	const struct store_find *q = f->q;
	struct span last_pk, last_rk;
	if (f->n == 0)
		return found_place_cmp(q->from_pk, q->from_rk, pk, rk) <= 0;
	found_part_end(&f->part, &last_pk, &last_rk);
	return found_place_cmp(last_pk, last_rk, pk, rk) < 0;
}

/* ---- rows into the shadow ---- */

/* Finds or makes the partition in the shadow. */
static enum err have_partition(
	struct store *shadow, uint64_t table, struct span pk, struct item *ret)
{
	enum err e = store_child(shadow, NULL, table, CLASS_KEYED, pk, WANT_ATTRS, ret);
	struct err_detail why = { 0 };
	if (e != ERR_NOT_FOUND)
		return e;
	struct change put = { .op = CHANGE_PUT,
		.kind = ITEM_PARTITION,
		.at = { .parent = table, .class = CLASS_KEYED, .key = pk },
		.version = cloudstore_new_version(shadow),
		.attrs = ATTRS_UNSET };
	e = store_apply(shadow, &put, 1, false, &why);
	changes_fini(&put, 1);
	return e == ERR_OK ? store_child(shadow, NULL, table, CLASS_KEYED, pk, WANT_ATTRS, ret) : e;
}

static enum err turn_to(struct finding *f, struct span pk)
{
	struct merge *m = &f->r.merge;
	enum err e = merge_end(m, false);
	item_fini(&f->partition);
	if (e == ERR_OK)
		e = have_partition(f->s->shadow, f->table.id, pk, &f->partition);
	merge_fini(m);
	merge_begin(m, f->s->shadow, f->partition.id, SPAN_LIT(""));
	return e;
}

static enum err order_key(struct span key, const char *what, char out[LIMIT_KEY_BYTES],
	struct span *ret, struct err_detail *why)
{
	enum err e = key_check(key, what, why);
	if (e == ERR_OK)
		key_to_order(key.p, key.n, out);
	*ret = span_make(out, key.n);
	return e;
}

static enum err take(struct refresh *r, const struct cloud_row *row)
{
	struct finding *f = r->arg;
	char pk_order[LIMIT_KEY_BYTES], rk_order[LIMIT_KEY_BYTES];
	struct span pk, rk;
	enum err e = order_key(row->entity.pk, "PartitionKey", pk_order, &pk, &r->why);
	if (e == ERR_OK)
		e = order_key(row->entity.rk, "RowKey", rk_order, &rk, &r->why);
	if (e == ERR_OK && !is_in_order(f, pk, rk))
		e = ERR_NOT_SUPPORTED;
	if (e == ERR_OK && (f->partition.id == 0 || !span_eq(f->partition.key, pk)))
		e = turn_to(f, pk);
	if (e != ERR_OK)
		return e;
	merge_skip(&r->merge, rk);
	found_part_add(&f->part, pk, rk);
	f->n++;
	return refresh_take_row(r, row);
}

/* Reads one answer of the service, which may be empty before the last. */
static enum err read_answer(struct finding *f, struct row_scan *rows, bool *ret_end)
{
	struct refresh *r = &f->r;
	enum err e = refresh_begin(r, f->s, &f->table, SPAN_LIT(""));
	r->arg = f;
	rows->client = r->client;
	if (e == ERR_OK)
		e = filter_error(refresh_read(r, rows, take, ret_end));
	if (e == ERR_OK)
		e = merge_end(&r->merge, false);
	*ret_end = *ret_end && rows->last;
	return refresh_end(r, e);
}

static void end_part(struct finding *f)
{
	const struct store_find *q = f->q;
	struct found_part *p = &f->part;
	p->to_end = q->until_pk.p == NULL;
	/* find_filter() gives the service a bound of RowKeys only within one partition. */
	p->to_partition =
		!p->to_end && (q->until_rk.p == NULL || !span_eq(q->from_pk, q->until_pk));
	buf_clear(&p->to_pk);
	buf_clear(&p->to_rk);
	buf_add_span(&p->to_pk, q->until_pk);
	buf_add_span(&p->to_rk, q->until_rk);
}

/* Answers without rows may be many: the lock is free between them. */
static enum err ask(struct finding *f)
{
	const struct row_scan_query scan = {
		.table = f->table.name, .filter = buf_span(&f->filter), .top = most_of(f->q)
	};
	struct row_scan rows;
	bool end = false;
	uint64_t changes = found_changes(f->s->found);
	found_part_init(&f->part, f->q, clock_mono_us());
	f->n = 0;
	enum err e = row_scan_begin(NULL, &scan, &rows);
	rows.stops = true;
	while (e == ERR_OK && !end && f->n == 0)
		e = read_answer(f, &rows, &end);
	row_scan_end(&rows);
	item_fini(&f->partition);
	if (e == ERR_OK && end)
		end_part(f);
	if (e == ERR_OK)
		return found_copy(f->s->found, &f->part, changes);
	found_part_fini(&f->part);
	return e;
}

/* ---- rows out of the shadow ---- */

/* Skips a row that was deleted since. */
static enum err give_row(struct finding *f, struct span pk, struct span rk, store_find_fn fn,
	void *arg, bool *ret_go_on)
{
	struct store *shadow = f->s->shadow;
	struct item row;
	enum err e = ERR_OK;
	if (f->partition.id == 0 || !span_eq(f->partition.key, pk)) {
		item_fini(&f->partition);
		e = store_child(
			shadow, NULL, f->q->table, CLASS_KEYED, pk, WANT_ATTRS, &f->partition);
	}
	if (e == ERR_OK)
		e = store_child(shadow, NULL, f->partition.id, CLASS_KEYED, rk, WANT_BODY, &row);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_OK : e;
	*ret_go_on = fn(arg, &f->partition, &row);
	item_fini(&row);
	return ERR_OK;
}

static enum err give_part(struct finding *f, store_find_fn fn, void *arg)
{
	const struct store_find *q = f->q;
	struct span keys = buf_span(&f->part.keys), pk, rk, to_pk, to_rk;
	enum err e = ERR_OK;
	bool go_on = true;
	found_part_end(&f->part, &to_pk, &to_rk);
	if (found_place_cmp(q->until_pk, q->until_rk, to_pk, to_rk) < 0) {
		to_pk = q->until_pk;
		to_rk = q->until_rk;
	}
	while (e == ERR_OK && go_on && found_next(&keys, &pk, &rk)) {
		if (found_place_cmp(pk, rk, q->from_pk, q->from_rk) < 0)
			continue;
		go_on = found_place_cmp(pk, rk, to_pk, to_rk) <= 0;
		if (go_on)
			e = give_row(f, pk, rk, fn, arg, &go_on);
	}
	item_fini(&f->partition);
	return e;
}

/* The next call begins behind this place. */
static void go_on_behind(struct store_found *ret, struct span pk, struct span rk)
{
	ret->more = true;
	buf_add_span(&ret->next_pk, pk);
	if (rk.p != NULL)
		buf_add_span(&ret->next_rk, rk);
	buf_add_char(rk.p != NULL ? &ret->next_rk : &ret->next_pk, BEHIND);
}

static void say_where(const struct finding *f, struct store_found *ret)
{
	struct span pk, rk;
	found_part_end(&f->part, &pk, &rk);
	if (found_place_cmp(f->q->until_pk, f->q->until_rk, pk, rk) > 0)
		go_on_behind(ret, pk, rk);
}

static enum err find_whole(struct finding *f, store_find_fn fn, void *arg, struct store_found *ret)
{
	struct outage p = { .s = f->s };
	enum err e = ERR_OK;
	if (!found_get(f->s->found, f->q, &f->part))
		do {
			e = ask(f);
			p.away = f->r.away;
		} while (outage_retry(&p, &e));
	if (e != ERR_OK)
		return e;
	e = give_part(f, fn, arg);
	say_where(f, ret);
	found_part_fini(&f->part);
	return e;
}

/* ---- rows of the response alone ---- */

/* The shadow knows the attributes, and perhaps the partition and the row. */
static void know(struct store *shadow, uint64_t parent, struct span key, enum item_kind kind,
	struct item *ret)
{
	if (parent == 0 ||
		store_child(shadow, NULL, parent, CLASS_KEYED, key, WANT_ATTRS, ret) != ERR_OK)
		*ret = (struct item){ .attrs = ATTRS_UNSET };
	ret->kind = kind;
	ret->key = key;
}

static enum err give_selected(struct finding *f, const struct cloud_row *row, store_find_fn fn,
	void *arg, struct store_found *ret, bool *ret_go_on)
{
	char pk_order[LIMIT_KEY_BYTES], rk_order[LIMIT_KEY_BYTES];
	struct buf body = BUF_INIT(LIMIT_DOCUMENT_BYTES);
	struct item partition, it;
	struct span pk, rk;
	enum err e = order_key(row->entity.pk, "PartitionKey", pk_order, &pk, &f->r.why);
	if (e == ERR_OK)
		e = order_key(row->entity.rk, "RowKey", rk_order, &rk, &f->r.why);
	if (e == ERR_OK && !is_in_order(f, pk, rk))
		e = f->n == 0 ? ERR_NOT_SUPPORTED
			      : err_set(&f->r.why, ERR_IO,
					"the service's rows are not in the order of their keys");
	if (e != ERR_OK)
		return e;
	found_part_add(&f->part, pk, rk);
	f->n++;
	know(f->s->shadow, f->q->table, pk, ITEM_PARTITION, &partition);
	know(f->s->shadow, partition.id, rk, ITEM_ROW, &it);
	entity_json_encode(&row->entity, ENTITY_JSON_NEWLINE, &body);
	it.version = row->entity.timestamp;
	it.flags = ITEM_CANONICAL;
	it.body = buf_span(&body);
	it.size = body.len;
	*ret_go_on = buf_ok(&body) && fn(arg, &partition, &it);
	buf_clear(&ret->next_pk);
	buf_clear(&ret->next_rk);
	go_on_behind(ret, pk, rk);
	item_fini(&partition);
	item_fini(&it);
	e = buf_full(&body);
	buf_fini(&body);
	return e;
}

/* Until a response with rows has ended. */
static enum err read_selected(struct finding *f, struct row_scan *rows, store_find_fn fn, void *arg,
	struct store_found *ret)
{
	struct cloud_row row = { 0 };
	bool go_on = true;
	enum err e = ERR_OK;
	while (e == ERR_OK && go_on) {
		e = row_scan_next(rows, &row, &f->r.why);
		f->r.away = outage_is(e);
		if (e == ERR_OK)
			e = give_selected(f, &row, fn, arg, ret, &go_on);
		else if (e == ERR_NOT_FOUND && !rows->last && !ret->more)
			e = ERR_OK; /* an empty answer */
	}
	if (e == ERR_NOT_FOUND)
		ret->more = !rows->last;
	cloud_row_fini(&row);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static enum err ask_selected(
	struct finding *f, store_find_fn fn, void *arg, struct store_found *ret)
{
	const struct row_scan_query scan = { .table = f->table.name,
		.filter = buf_span(&f->filter),
		.select = f->q->select,
		.top = f->q->most > 0 ? most_of(f->q) : 0 };
	struct row_scan rows;
	struct client *client;
	f->r.away = false;
	may_block(BLOCK_SURE);
	enum err e = clients_take(&f->s->clients, &client, &f->r.why);
	if (e != ERR_OK)
		return refresh_error(f->s, e, &f->r.why);
	found_part_init(&f->part, f->q, clock_mono_us()); /* for the order of the rows */
	f->n = 0;
	e = row_scan_begin(client, &scan, &rows);
	rows.stops = true;
	if (e == ERR_OK)
		e = filter_error(read_selected(f, &rows, fn, arg, ret));
	row_scan_end(&rows);
	found_part_fini(&f->part);
	clients_give(&f->s->clients, client);
	return refresh_error(f->s, e, &f->r.why);
}

/* An error that says that the service did not answer comes before any row. */
static enum err find_selected(
	struct finding *f, store_find_fn fn, void *arg, struct store_found *ret)
{
	struct outage p = { .s = f->s };
	enum err e;
	do {
		e = ask_selected(f, fn, arg, ret);
		p.away = f->r.away;
	} while (outage_retry(&p, &e));
	return e;
}

/* A table that is gone has no rows. */
static enum err no_table(enum err e)
{
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

enum err cloudstore_find(struct store *store, const struct store_find *q, store_find_fn fn,
	void *arg, struct store_found *ret)
{
	struct finding f = { .s = (struct cloudstore *)store, .q = q };
	if (found_place_cmp(q->from_pk, q->from_rk, q->until_pk, q->until_rk) > 0)
		return ERR_OK;
	enum err e = store_get(f.s->shadow, NULL, q->table, WANT_ATTRS, &f.table);
	if (e != ERR_OK)
		return no_table(e);
	e = find_filter(q, &f.filter);
	if (e == ERR_OK)
		e = q->select.n > 0 ? find_selected(&f, fn, arg, ret)
				    : find_whole(&f, fn, arg, ret);
	buf_fini(&f.filter);
	item_fini(&f.table);
	return no_table(e);
}
