/* SPDX-License-Identifier: MIT
 * Moments of one series differ in size by `delta`, which commits move.  So what is kept is the size at
 * the beginning of the series; a count at any of its moments tells it.  A change of unknown length
 * begins another series. */
#include "fs/cache/stream_sizes.h"

#include "base/lock.h"
#include "fs/core/nid.h"
#include "model/key.h"
#include "service/core/partition_keys.h"
#include "service/core/row_line.h"
#include "service/core/saved_sizes.h"

#include <stdatomic.h>
#include <stdlib.h>

#define STREAMS_KNOWN 64
#define COLUMNS_MAX ((size_t)16 << 10)

struct known {
	struct stream_moment now;
	uint64_t table_id, dir_id;
	bool has_size;
	int64_t first; /* the size at the beginning of the series */
	bool has_columns;
	struct buf columns;
};

struct stream_sizes {
	struct service *service;
	const atomic_uint_fast64_t *changes; /* committed sets */
	struct mutex lock;
	atomic_size_t n;
	uint64_t series; /* guarded by lock, as all below */
	size_t oldest;
	struct known v[STREAMS_KNOWN];
};

struct stream_sizes *stream_sizes_new(struct service *service, const atomic_uint_fast64_t *changes)
{
	struct stream_sizes *t = calloc(1, sizeof(*t));
	if (t != NULL && mutex_init(&t->lock, RANK_STREAM_SIZES) != 0) {
		free(t);
		return NULL;
	}
	if (t != NULL) {
		t->service = service;
		t->changes = changes;
	}
	return t;
}

void stream_sizes_free(struct stream_sizes *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; i < STREAMS_KNOWN; i++)
		buf_fini(&t->v[i].columns);
	mutex_destroy(&t->lock);
	free(t);
}

static void begin_series(struct stream_sizes *t, struct known *k)
{
	lock_assert_held(&t->lock);
	k->now.series = ++t->series;
	k->now.delta = 0;
	k->has_size = k->has_columns = false;
	buf_fini(&k->columns);
}

static struct known *find(struct stream_sizes *t, uint64_t nid)
{
	lock_assert_held(&t->lock);
	for (size_t i = 0; i < STREAMS_KNOWN; i++)
		if (t->v[i].now.nid == nid)
			return &t->v[i];
	return NULL;
}

static struct known *make(struct stream_sizes *t, uint64_t nid, uint64_t table_id, uint64_t dir_id)
{
	struct known *k = &t->v[t->oldest++ % STREAMS_KNOWN];
	buf_fini(&k->columns);
	*k = (struct known){ .now = { .nid = nid }, .table_id = table_id, .dir_id = dir_id };
	begin_series(t, k);
	atomic_store(&t->n, t->oldest);
	return k;
}

struct stream_moment stream_sizes_now(
	struct stream_sizes *t, uint64_t nid, uint64_t table_id, uint64_t dir_id)
{
	struct stream_moment ret = { 0 };
	if (service_can(t->service, STORE_SHARED) || service_is_changing(t->service))
		return ret;
	mutex_lock(&t->lock);
	struct known *k = find(t, nid);
	if (k == NULL)
		k = make(t, nid, table_id, dir_id);
	ret = k->now;
	ret.changes = atomic_load(t->changes);
	mutex_unlock(&t->lock);
	return ret;
}

bool stream_moment_is(const struct stream_moment *a, const struct stream_moment *b)
{
	return a->series != 0 && a->series == b->series && a->changes == b->changes;
}

static struct known *find_series(struct stream_sizes *t, const struct stream_moment *m)
{
	struct known *k = m->series != 0 ? find(t, m->nid) : NULL;
	return k != NULL && k->now.series == m->series ? k : NULL;
}

bool stream_sizes_find(struct stream_sizes *t, const struct stream_moment *m, uint64_t *ret)
{
	mutex_lock(&t->lock);
	const struct known *k = find_series(t, m);
	bool found = k != NULL && k->has_size;
	if (found)
		*ret = (uint64_t)(k->first + m->delta);
	mutex_unlock(&t->lock);
	return found;
}

void stream_sizes_add(struct stream_sizes *t, const struct stream_moment *m, uint64_t size)
{
	mutex_lock(&t->lock);
	struct known *k = find_series(t, m);
	if (k != NULL) {
		k->has_size = true;
		k->first = (int64_t)size - m->delta;
	}
	mutex_unlock(&t->lock);
}

bool stream_sizes_find_columns(
	struct stream_sizes *t, const struct stream_moment *m, struct buf *ret)
{
	mutex_lock(&t->lock);
	const struct known *k = find_series(t, m);
	bool found = k != NULL && k->has_columns;
	if (found)
		buf_add(ret, k->columns.data, k->columns.len);
	mutex_unlock(&t->lock);
	return found;
}

void stream_sizes_add_columns(
	struct stream_sizes *t, const struct stream_moment *m, struct span names)
{
	mutex_lock(&t->lock);
	struct known *k = find_series(t, m);
	if (k != NULL && !k->has_columns) {
		k->columns = BUF_INIT(COLUMNS_MAX);
		buf_add_span(&k->columns, names);
		k->has_columns = buf_ok(&k->columns);
	}
	mutex_unlock(&t->lock);
}

/* ---- changes ---- */

static bool is_kept(const struct known *k)
{
	return nid_is_dir_control(k->now.nid) &&
		nid_dir_control(k->now.nid) == DIR_CONTROL_ROWS_NDJSON;
}

/* The rows of a directory changed; delta NULL: nobody knows by how much.  table_id 0: nobody knows
 * where. */
static void rows_changed(
	struct stream_sizes *t, uint64_t table_id, uint64_t dir_id, const int64_t *delta)
{
	mutex_lock(&t->lock);
	for (size_t i = 0; i < STREAMS_KNOWN; i++) {
		struct known *k = &t->v[i];
		bool theirs = table_id == 0 || k->dir_id == table_id || k->dir_id == dir_id;
		if (k->now.nid != 0 && theirs && delta != NULL && is_kept(k))
			k->now.delta += *delta;
		else if (k->now.nid != 0 && theirs)
			begin_series(t, k);
	}
	mutex_unlock(&t->lock);
}

static bool any_of(struct stream_sizes *t, uint64_t table_id)
{
	bool found = false;
	mutex_lock(&t->lock);
	for (size_t i = 0; i < STREAMS_KNOWN && !found; i++)
		found = t->v[i].now.nid != 0 && t->v[i].table_id == table_id;
	mutex_unlock(&t->lock);
	return found;
}

/* Of the partition in which the change stands. */
static bool find_place(
	struct service *service, const struct change *c, uint64_t dir_id, struct partition_key *ret)
{
	const struct item_ref *at = c->op == CHANGE_MOVE ? &c->to : &c->at;
	struct span order = at->pk;
	if (at->has_pk)
		ret->table = at->parent;
	else if (c->left.kind != ITEM_NONE && c->left.id == dir_id)
		ret->table = c->left.parent, order = c->left.key;
	else
		return partition_keys_get(service_partition_keys(service), dir_id, ret) == ERR_OK;
	ret->pk_n = order.n;
	key_from_order(order.p, order.n, ret->pk);
	return true;
}

static bool line_of(struct row_line *l, const struct item *it, struct span pk, struct span document,
	int64_t *ret)
{
	char rk[LIMIT_KEY_BYTES];
	uint64_t bytes = 0;
	*ret = 0;
	if (it->kind != ITEM_ROW || item_is_empty_row(it))
		return true;
	key_from_order(it->key.p, it->key.n, rk);
	enum err e = row_line_bytes(
		l, it, pk, span_make(rk, it->key.n), ROW_LINE_STREAM, document, &bytes);
	*ret = (int64_t)bytes + 1;
	return e == ERR_OK;
}

static void row_changed(struct stream_sizes *t, const struct change *c, struct row_line *l)
{
	uint64_t dir_id = c->now.parent;
	struct partition_key place;
	if (!find_place(t->service, c, dir_id, &place)) {
		rows_changed(t, 0, 0, NULL);
		return;
	}
	if (!any_of(t, place.table))
		return;
	struct span pk = span_make(place.pk, place.pk_n);
	int64_t before, after = 0;
	bool known = line_of(l, &c->old, pk, c->old.body, &before) &&
		(c->op == CHANGE_DELETE || line_of(l, &c->now, pk, c->body, &after));
	int64_t delta = after - before;
	rows_changed(t, place.table, dir_id, known ? &delta : NULL);
}

static bool moves_or_empties_dirs(const struct change *c)
{
	return item_is_dir(c->now.kind) &&
		(c->op == CHANGE_MOVE ||
			(c->op == CHANGE_DELETE && (c->flags & CHANGE_RECURSIVE) != 0));
}

/* A row may leave its place: nobody tells the length that its line had. */
static bool moves_row(const struct change *c)
{
	bool was_row = c->at.id != 0 || c->at.class == CLASS_KEYED;
	return c->op == CHANGE_MOVE && c->at.class != CLASS_QUEUE &&
		(was_row || (c->flags & CHANGE_EXCHANGE) != 0);
}

static bool changes_row(const struct change *c)
{
	return c->op != CHANGE_ATTRS && (c->now.kind == ITEM_ROW || c->old.kind == ITEM_ROW);
}

static void forget_rows_of(struct stream_sizes *t, uint64_t partition_id)
{
	struct partition_key place;
	enum err e = partition_keys_get(service_partition_keys(t->service), partition_id, &place);
	rows_changed(t, e == ERR_OK ? place.table : 0, partition_id, NULL);
}

void stream_sizes_changed(struct stream_sizes *t, const struct change *changes, size_t n)
{
	struct row_line line = { 0 };
	if (atomic_load(&t->n) == 0)
		return;
	for (size_t i = 0; i < n; i++) {
		const struct change *c = &changes[i];
		if (moves_or_empties_dirs(c)) {
			rows_changed(t, 0, 0, NULL);
		} else if (moves_row(c)) {
			forget_rows_of(t, c->at.parent);
			forget_rows_of(t, c->now.parent);
		} else if (changes_row(c)) {
			row_changed(t, c, &line);
		}
	}
	row_line_fini(&line);
}

/* ---- over a clean close ---- */

_Static_assert(STREAMS_KNOWN == SAVED_SIZES_MAX, "all of them are kept");

void stream_sizes_load(struct stream_sizes *t)
{
	struct saved_size kept[SAVED_SIZES_MAX];
	int64_t version = saved_sizes_version(t->service);
	size_t n = saved_sizes_read(t->service, kept);
	mutex_lock(&t->lock);
	for (size_t i = 0; i < n; i++) {
		uint64_t nid = nid_of_dir_control(DIR_CONTROL_ROWS_NDJSON, kept[i].dir_id);
		struct known *k = make(t, nid, kept[i].table_id, kept[i].dir_id);
		k->has_size = true;
		k->first = (int64_t)kept[i].bytes;
	}
	mutex_unlock(&t->lock);
	if (version == 0 || saved_sizes_version(t->service) != version)
		rows_changed(t, 0, 0, NULL);
}

void stream_sizes_save(struct stream_sizes *t)
{
	struct saved_size kept[SAVED_SIZES_MAX];
	size_t n = 0;
	int64_t version = saved_sizes_version(t->service);
	mutex_lock(&t->lock);
	for (size_t i = 0; i < STREAMS_KNOWN; i++) {
		const struct known *k = &t->v[i];
		if (k->has_size && is_kept(k))
			kept[n++] = (struct saved_size){ k->table_id, k->dir_id,
				(uint64_t)(k->first + k->now.delta) };
	}
	mutex_unlock(&t->lock);
	if (version != 0 && saved_sizes_version(t->service) == version)
		saved_sizes_write(t->service, version, kept, n);
}
