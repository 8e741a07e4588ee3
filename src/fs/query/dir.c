/* SPDX-License-Identifier: MIT
 * Of a partition one row is enough: the query is stopped behind it and goes on behind the partition, so
 * that partitions cost a seek each, however large they are.  Where a seek is a request to another machine,
 * it is stopped after as many rows as an answer has. */
#include "fs/query/dir.h"

#include "base/clock.h"
#include "fs/core/dir_cursors.h"
#include "fs/query/rows.h"
#include "fs/tree/open_quota.h"
#include "model/filename.h"
#include "model/key.h"

#include <stdlib.h>

/* Positions below STORE_ID_FIRST are not ids. */
#define AFTER_DOT 1
#define AFTER_DOTDOT 2

/* No key holds a control character: with it behind a key, the next one is meant. */
#define BEHIND '\x01'

/* Rows of one partition that follow each other, before a seek. */
#define ROWS_BEFORE_SEEK 1000

struct query_dir {
	struct vdir dir;
	struct query_node *node;    /* one reference */
	struct dir_cursors cursors; /* keys in UTF-8 */
	size_t held;                /* of them, as counted (open_quota.h) */
};

struct reply {
	struct query_dir *d;
	const struct caller *call;
	listing_fn fn;
	void *arg;
	struct buf pk, rk; /* the row to go on from */
	struct buf last;   /* the partition that was sent last */
	unsigned same;     /* rows of it that came since */
	bool sent, full, end;
	enum err e;
};

/* ---- one page ---- */

static bool send_entry(struct reply *r, struct span key, uint64_t id, mode_t type)
{
	char name[LIMIT_NAME_BYTES + 1];
	struct stat st = { .st_ino = query_ino(r->d->node, id), .st_mode = type };
	(void)filename_encode(key, type == S_IFDIR ? FILENAME_PARTITION : FILENAME_ROW, name);
	/* No node: the kernel looks a name up when it needs one. */
	if (!r->fn(r->arg, name, 0, &st, (int64_t)id)) {
		r->full = true;
		return false;
	}
	r->sent = true;
	r->e = dir_cursors_add(&r->d->cursors, id, CLASS_KEYED, key);
	return r->e == ERR_OK;
}

static void put_key(struct buf *to, struct span key)
{
	buf_clear(to);
	if (buf_reserve(to, key.n + 2))
		buf_add_span(to, key);
}

static bool is_last(const struct reply *r, struct span pk)
{
	return r->last.data != NULL && span_eq(buf_span(&r->last), pk);
}

static bool on_partition(void *arg, const struct query_row *row)
{
	struct reply *r = arg;
	if (is_last(r, row->pk))
		return service_can(r->d->dir.fs->service, STORE_FINDS) &&
			++r->same < ROWS_BEFORE_SEEK;
	if (!send_entry(r, row->pk, row->item->parent, S_IFDIR))
		return false;
	put_key(&r->last, row->pk);
	r->same = 0;
	return true;
}

static bool on_row(void *arg, const struct query_row *row)
{
	return send_entry(arg, row->rk, row->item->id, S_IFREG);
}

/* Where the page after this one begins. */
static void go_on_from(struct reply *r, const struct query_end *end)
{
	r->end = !end->more;
	put_key(&r->pk, buf_span(&end->next_pk));
	put_key(&r->rk, buf_span(&end->next_rk));
	if (is_last(r, buf_span(&r->pk)))
		buf_add_char(&r->pk, BEHIND);
}

static enum err read_page(struct reply *r, const struct query_limit *limit)
{
	struct query_node *options = query_node_options(r->d->node);
	bool rows = r->d->node->kind == QUERY_PARTITION;
	struct query_end end;
	struct query q = { .table_id = options->table_id,
		.filter = &options->query.filter,
		.limit = limit->any ? NULL : &limit->ranges,
		.requester = requester_of(r->call),
		.from_pk = buf_span(&r->pk),
		.from_rk = buf_span(&r->rk),
		.deadline_us = clock_mono_us() + QUERY_PAGE_US };
	enum err e =
		query_run(r->d->dir.fs->service, NULL, &q, rows ? on_row : on_partition, r, &end);
	if (e == ERR_OK)
		e = r->e;
	if (e == ERR_OK && !r->full)
		go_on_from(r, &end);
	if (e == ERR_OK && (!buf_ok(&r->pk) || !buf_ok(&r->rk) || !buf_ok(&r->last)))
		e = ERR_NO_MEMORY;
	query_end_fini(&end);
	return e;
}

/* Pages until something can be sent and time is up, so that a listing starts at once. */
static enum err read_pages(struct reply *r, const struct span *pk)
{
	struct query_limit limit;
	uint64_t enough = clock_mono_us() + QUERY_PAGE_US;
	enum err e = query_limit_find(
		r->d->dir.fs, query_node_options(r->d->node), pk, NULL, r->call, &limit);
	while (e == ERR_OK && !r->full && !r->end && !(r->sent && clock_mono_us() >= enough)) {
		e = read_page(r, &limit);
		if (e == ERR_OK && !r->sent && !r->end && caller_interrupted(r->call))
			e = ERR_CANCELLED;
	}
	key_ranges_fini(&limit.ranges);
	return e;
}

/* ---- positions ---- */

static bool is_here(const struct query_node *dir, const struct item *it)
{
	if (dir->kind == QUERY_OPTIONS)
		return it->kind == ITEM_PARTITION && it->parent == dir->table_id;
	return it->kind == ITEM_ROW && it->parent == dir->item.id;
}

/* The place behind the entry with this id. */
static enum err find_position(struct reply *r, uint64_t id)
{
	struct query_dir *d = r->d;
	struct item it = { 0 };
	enum item_class class;
	struct span key;
	char text[LIMIT_KEY_BYTES];
	enum err e = ERR_OK;
	if (!dir_cursors_find(&d->cursors, id, &class, &key)) {
		e = store_get(d->dir.fs->store, NULL, id, WANT_ATTRS, &it);
		if (e == ERR_NOT_FOUND || (e == ERR_OK && !is_here(d->node, &it)))
			e = ERR_INVALID_INPUT;
		if (e == ERR_OK)
			key_from_order(it.key.p, it.key.n, text);
		key = span_make(text, it.key.n);
	}
	if (e == ERR_OK) {
		struct buf *next = d->node->kind == QUERY_PARTITION ? &r->rk : &r->pk;
		put_key(next, key);
		buf_add_char(next, BEHIND);
	}
	item_fini(&it);
	return e;
}

/* ---- the directory ---- */

static bool send_dots(const struct query_dir *d, int64_t offset, listing_fn fn, void *arg)
{
	struct stat st = { .st_ino = d->node != NULL ? d->node->ino : 0, .st_mode = S_IFDIR };
	if (offset < AFTER_DOT && !fn(arg, ".", 0, &st, AFTER_DOT))
		return false;
	return offset >= AFTER_DOTDOT || fn(arg, "..", 0, &st, AFTER_DOTDOT);
}

static enum err dir_read(
	struct vdir *dir, const struct caller *call, int64_t offset, listing_fn fn, void *arg)
{
	struct query_dir *d = (struct query_dir *)dir;
	struct reply r = { .d = d, .call = call, .fn = fn, .arg = arg };
	char text[LIMIT_KEY_BYTES];
	if (offset < AFTER_DOTDOT && !send_dots(d, offset, fn, arg))
		return ERR_OK;
	if (d->node == NULL)
		return ERR_OK;
	r.sent = offset < AFTER_DOTDOT;
	r.pk = r.rk = r.last = BUF_INIT(LIMIT_KEY_BYTES + 2);
	bool rows = d->node->kind == QUERY_PARTITION;
	const struct item *it = &d->node->item;
	struct span pk = { text, it->key.n };
	if (it->key.n > 0)
		key_from_order(it->key.p, it->key.n, text);
	if (rows)
		put_key(&r.pk, pk);
	enum err e = offset > AFTER_DOTDOT ? find_position(&r, (uint64_t)offset) : ERR_OK;
	dir_cursors_next_reply(&d->cursors, offset > AFTER_DOTDOT);
	d->cursors.fixed = !open_quota_may_grow(dir->fs, call->uid);
	if (e == ERR_OK && !(buf_ok(&r.pk) && buf_ok(&r.rk)))
		e = ERR_NO_MEMORY;
	if (e == ERR_OK)
		e = read_pages(&r, rows ? &pk : NULL);
	open_quota_set(dir->fs->open_quota, &d->held, dir_cursors_holds(&d->cursors));
	buf_fini(&r.pk);
	buf_fini(&r.rk);
	buf_fini(&r.last);
	return e;
}

static void dir_free(struct vdir *dir)
{
	struct query_dir *d = (struct query_dir *)dir;
	query_node_unref(dir->fs->query_nodes, d->node);
	open_quota_set(dir->fs->open_quota, &d->held, 0);
	dir_cursors_fini(&d->cursors);
	free(d);
}

static const struct vdir_ops dir_ops = {
	.pool = VPOOL_SCAN,
	.read = dir_read,
	.free = dir_free,
};

enum err query_dir_open(struct fs *fs, struct query_node *node, struct vdir **ret)
{
	struct query_dir *d = calloc(1, sizeof(*d));
	if (d == NULL) {
		query_node_unref(fs->query_nodes, node);
		return ERR_NO_MEMORY;
	}
	d->dir = (struct vdir){ .ops = &dir_ops, .fs = fs };
	d->node = node;
	*ret = &d->dir;
	return ERR_OK;
}
