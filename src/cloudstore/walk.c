/* SPDX-License-Identifier: MIT */
#include "cloudstore/walk.h"

#include "cloudstore/question.h"
#include "model/key.h"

#include <stdatomic.h>

/* Ranges of partitions whose rows are confirmed too, beside the ranges of their names. */
static uint64_t deep(uint64_t table)
{
	return table | UINT64_C(1) << 62;
}

bool walk_covers(struct cloudstore *s, const struct item *partition)
{
	return confirmed_covers(s->confirmed, deep(partition->parent), partition->key, NULL, NULL);
}

void walk_forget(struct cloudstore *s, uint64_t table)
{
	confirmed_forget(s->confirmed, deep(table));
}

/* ---- walks ---- */

static _Atomic uint64_t *last_of(struct cloudstore *s, uint64_t table)
{
	return &s->walked[table % CLOUDSTORE_STRIPES];
}

void walk_note(struct cloudstore *s, const struct item *partition)
{
	atomic_store(last_of(s, partition->parent), partition->id);
}

static bool take_first(void *arg, const struct item *it)
{
	return item_copy(arg, it) != ERR_OK;
}

/* *ret: the partition of the shadow behind this key, or kind ITEM_NONE. */
static enum err next_partition(
	struct cloudstore *s, uint64_t table, struct span key, struct item *ret)
{
	*ret = (struct item){ 0 };
	return store_list(
		s->shadow, NULL, table, CLASS_KEYED, key, false, WANT_ATTRS, take_first, ret);
}

bool walk_follows(struct cloudstore *s, const struct item *partition)
{
	struct item last = { 0 }, next = { 0 };
	uint64_t id = atomic_load(last_of(s, partition->parent));
	if (!confirmed_keeps(s->confirmed))
		return false;
	enum err e = id != 0 ? store_get(s->shadow, NULL, id, WANT_ATTRS, &last) : ERR_NOT_FOUND;
	if (e == ERR_OK && last.parent == partition->parent)
		e = next_partition(s, partition->parent, last.key, &next);
	bool walk = e == ERR_OK && next.id == partition->id;
	item_fini(&last);
	item_fini(&next);
	return walk;
}

/* ---- reading ---- */

struct walk {
	struct refresh r;
	struct buf pk;   /* order form: the partition whose rows come */
	struct buf done; /* the last whose rows all came */
	bool any_done;
	bool stopped; /* behind `done` the names of the shadow are not those of the service */
};

static enum err finish(struct walk *a)
{
	enum err e = merge_end(&a->r.merge, true);
	buf_clear(&a->done);
	buf_add_span(&a->done, buf_span(&a->pk));
	a->any_done = true;
	return e == ERR_OK ? buf_full(&a->done) : e;
}

/* The rows of another partition come. */
static enum err turn(struct walk *a, struct span pk)
{
	struct item next = { 0 };
	enum err e = finish(a);
	if (e == ERR_OK)
		e = next_partition(a->r.s, a->r.dir->id, buf_span(&a->pk), &next);
	a->stopped = next.id == 0 || !span_eq(next.key, pk);
	if (e == ERR_OK && !a->stopped) {
		buf_clear(&a->pk);
		buf_add_span(&a->pk, pk);
		merge_fini(&a->r.merge);
		merge_begin(&a->r.merge, a->r.s->shadow, next.id, SPAN_LIT(""));
		e = buf_full(&a->pk);
	}
	item_fini(&next);
	return e;
}

static enum err take(struct refresh *r, const struct cloud_row *row)
{
	struct walk *a = r->arg;
	char key[LIMIT_KEY_BYTES];
	struct span pk = row->entity.pk;
	if (a->stopped)
		return ERR_OK;
	enum err e = key_check(pk, "PartitionKey", &r->why);
	if (e != ERR_OK)
		return e;
	key_to_order(pk.p, pk.n, key);
	if (!span_eq(span_make(key, pk.n), buf_span(&a->pk)))
		e = turn(a, span_make(key, pk.n));
	return e == ERR_OK && !a->stopped ? refresh_take_row(r, row) : e;
}

/* The caller holds the lock. */
static enum err read_page(struct walk *a, const struct item *partition, struct refreshed *ret)
{
	struct refresh *r = &a->r;
	struct buf filter = BUF_INIT(FILTER_LIMIT);
	bool end = false;
	buf_add_span(&a->pk, partition->key);
	merge_fini(&r->merge);
	merge_begin(&r->merge, r->s->shadow, partition->id, SPAN_LIT(""));
	refresh_add_from(&filter, "PartitionKey", partition->key);
	enum err e = refresh_scan(r, &filter, "", PAGE_ROWS, take, &end);
	if (e == ERR_OK && end && !a->stopped)
		e = finish(a);
	ret->end = a->any_done;
	if (e == ERR_OK && !a->any_done)
		e = refresh_end_part(r, partition->id, SPAN_LIT(""), ret);
	if (e == ERR_OK && a->any_done)
		confirmed_add(r->s->confirmed, deep(partition->parent), partition->key,
			buf_span(&a->done), false, r->asked_us);
	buf_fini(&filter);
	return e;
}

enum err walk_read(struct cloudstore *s, const struct item *partition, struct refreshed *ret)
{
	const struct item table = { .id = partition->parent, .kind = ITEM_TABLE };
	struct walk a = { .pk = BUF_INIT(LIMIT_KEY_BYTES + 1),
		.done = BUF_INIT(LIMIT_KEY_BYTES + 1) };
	enum err e = refresh_begin(&a.r, s, &table, SPAN_LIT(""));
	a.r.arg = &a;
	/* Another thread may have asked while this one waited. */
	if (e == ERR_OK && walk_covers(s, partition))
		ret->end = true;
	else if (e == ERR_OK)
		e = read_page(&a, partition, ret);
	buf_fini(&a.pk);
	buf_fini(&a.done);
	e = refresh_end(&a.r, e);
	ret->away = a.r.away;
	return e;
}
