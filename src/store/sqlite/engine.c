/* SPDX-License-Identifier: MIT
 * The SQLite engine: reading, views, which store is open.  Its files are opened and closed in
 * open.c.  Writing is in commit.c and below it. */
#include "store/sqlite/engine.h"

#include "base/lock.h"
#include "model/limits.h"
#include "store/engines.h"
#include "store/sqlite/copy.h"
#include "store/sqlite/feed.h"
#include "store/sqlite/hold.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* By so much the log must have grown under held views to be brought back when one ends. */
#define LOG_GROWN_BYTES ((uint64_t)1 << 20)

/* ---- reading ---- */

static enum err reader(struct store *s, struct store_view *v, struct sql_conn **ret)
{
	if (!v)
		return sql_pool_borrow(&sql_of(s)->readers, ret);
	mutex_lock(&v->lock);
	*ret = v->conn;
	return ERR_OK;
}

static void done_reading(struct store *s, struct store_view *v, struct sql_conn *c, enum err result)
{
	if (v)
		mutex_unlock(&v->lock);
	else
		sql_pool_return(&sql_of(s)->readers, c, result);
}

/* Every name is looked up in a directory, and mostly in the same as before. */
static enum err get_attrs(struct sql_conn *c, uint64_t id, struct item *ret)
{
	if (id != 0 && c->dir.id == id)
		return item_copy(ret, &c->dir);
	enum err e = sql_get(c, id, WANT_ATTRS, ret);
	if (e == ERR_OK && item_is_dir(ret->kind)) {
		item_fini(&c->dir);
		(void)item_copy(&c->dir, ret);
	}
	return e;
}

/* What is read between two commits of a busy writer is read through its own connection: its pages
 * are warm, and the directories that it changes are in memory, while a commit makes a reading
 * connection read all its pages anew.  So many reads a commit, then the others are worth it.
 * True: with the lock held, which is for a few microseconds. */
static bool writer_is_free(struct sql_store *st)
{
	if (atomic_load_explicit(&st->warm_reads, memory_order_relaxed) == 0 ||
		mutex_trylock(&st->lock) != 0)
		return false;
	/* Inside a transaction: rolling back failed. */
	bool is_free = !st->led && !st->head && atomic_load(&st->warm_reads) > 0 &&
		sqlite3_get_autocommit(st->writer.conn->db) != 0;
	if (is_free)
		atomic_fetch_sub(&st->warm_reads, 1);
	else
		mutex_unlock(&st->lock);
	return is_free;
}

static enum err get_warm(struct sql_store *st, uint64_t id, unsigned want, struct item *ret)
{
	lock_assert_held(&st->lock);
	const struct item *dir = want & WANT_BODY ? NULL : sql_dir_known(&st->writer, id);
	enum err e = dir ? item_copy(ret, dir) : sql_get(st->writer.conn, id, want, ret);
	mutex_unlock(&st->lock);
	return e;
}

static enum err get(
	struct store *s, struct store_view *v, uint64_t id, unsigned want, struct item *ret)
{
	struct sql_conn *c;
	if (!v && writer_is_free(sql_of(s)))
		return get_warm(sql_of(s), id, want, ret);
	enum err e = reader(s, v, &c);
	if (e != ERR_OK)
		return e;
	e = want == WANT_ATTRS ? get_attrs(c, id, ret) : sql_get(c, id, want, ret);
	done_reading(s, v, c, e);
	return e;
}

static enum err engine_get(
	struct store *s, struct store_view *v, uint64_t id, unsigned want, struct item *ret)
{
	enum err e = get(s, v, id, want, ret);
	if (e == ERR_OK)
		ret->flags &= ITEM_FLAGS_PUBLIC;
	return e;
}

static enum err child(struct store *s, struct store_view *v, uint64_t parent, enum item_class class,
	struct span key, unsigned want, struct item *ret)
{
	struct sql_store *st = sql_of(s);
	struct sql_conn *c;
	enum err e;
	if (!v && writer_is_free(st)) {
		e = sql_child(st->writer.conn, parent, class, key, want, ret);
		mutex_unlock(&st->lock);
		return e;
	}
	e = reader(s, v, &c);
	if (e != ERR_OK)
		return e;
	e = sql_child(c, parent, class, key, want, ret);
	done_reading(s, v, c, e);
	return e;
}

static enum err engine_child(struct store *s, struct store_view *v, uint64_t parent,
	enum item_class class, struct span key, unsigned want, struct item *ret)
{
	enum err e = child(s, v, parent, class, key, want, ret);
	if (e == ERR_OK)
		ret->flags &= ITEM_FLAGS_PUBLIC;
	return e;
}

static enum err engine_list(struct store *s, struct store_view *v, uint64_t parent,
	enum item_class class, struct span after, bool inclusive, unsigned want, store_list_fn fn,
	void *arg, bool *ret_more)
{
	struct sql_store *st = sql_of(s);
	struct sql_conn *c;
	enum err e;
	unsigned read = want & ~(unsigned)WANT_FEW;
	if (!v && want & WANT_FEW && writer_is_free(st)) {
		e = sql_list(
			st->writer.conn, parent, class, after, inclusive, read, fn, arg, ret_more);
		mutex_unlock(&st->lock);
		return e;
	}
	e = reader(s, v, &c);
	if (e != ERR_OK)
		return e;
	e = sql_list(c, parent, class, after, inclusive, read, fn, arg, ret_more);
	done_reading(s, v, c, e);
	return e;
}

static enum err engine_scan(struct store *s, struct store_view *v, uint64_t parent,
	enum item_class class, struct span after, bool inclusive, store_skip_fn skip,
	store_list_fn fn, void *arg, bool *ret_more)
{
	struct sql_conn *c;
	enum err e = reader(s, v, &c);
	if (e != ERR_OK)
		return e;
	e = sql_scan(c, parent, class, after, inclusive, skip, fn, arg, ret_more);
	done_reading(s, v, c, e);
	return e;
}

static enum err engine_file_read(struct store *s, struct store_view *v, uint64_t id,
	uint64_t offset, void *out, size_t n, size_t *ret_n)
{
	struct sql_conn *c;
	enum err e = reader(s, v, &c);
	if (e != ERR_OK)
		return e;
	e = sql_file_read(c, id, offset, out, n, ret_n);
	done_reading(s, v, c, e);
	return e;
}

static int64_t engine_version_floor(struct store *s)
{
	return atomic_load(&sql_of(s)->version_high);
}

/* The first read does.  What is opened for reading may lack the counter: see open.c. */
static enum err fix_moment(struct sql_store *st, struct sql_conn *c)
{
	int64_t ignored;
	enum err e = sql_meta_get(c, "next_id", &ignored);
	e = e == ERR_NOT_FOUND ? ERR_CORRUPT : e;
	if (e == ERR_OK || (e == ERR_CORRUPT && st->read_only))
		return ERR_OK;
	sql_pool_return(&st->readers, c, e);
	return e;
}

static enum err engine_view_open(struct store *s, bool held, struct store_view **ret)
{
	struct sql_store *st = sql_of(s);
	struct store_view *v = calloc(1, sizeof(*v));
	if (!v)
		return ERR_NO_MEMORY;
	enum err e = sql_pool_borrow(&st->readers, &v->conn);
	if (e == ERR_OK)
		e = fix_moment(st, v->conn);
	if (e != ERR_OK) {
		free(v);
		return e;
	}
	mutex_init(&v->lock, RANK_STORE_VIEW);
	v->held = held;
	if (held && atomic_fetch_add(&st->held, 1) == 0)
		atomic_store(&st->held_log, sql_log_bytes(st));
	*ret = v;
	return ERR_OK;
}

/* A held view is over.  What the log has gathered is copied into the store here, and not by the
 * next writer, who would wait for it; with the last one its space is given back, unless somebody
 * else is reading. */
static void let_go(struct sql_store *st, sqlite3 *db)
{
	uint64_t log = sql_log_bytes(st);
	bool grown = log > SQL_LOG_BYTES || log > atomic_load(&st->held_log) + LOG_GROWN_BYTES;
	if (grown)
		sql_log_copy(st, db);
	if (atomic_fetch_sub(&st->held, 1) == 1 && grown)
		sql_log_shrink(st);
}

static void engine_view_close(struct store *s, struct store_view *v)
{
	struct sql_store *st = sql_of(s);
	if (!v->held) {
		sql_pool_return(&st->readers, v->conn, ERR_OK);
	} else if (sql_end_reading(v->conn) == ERR_OK) {
		let_go(st, v->conn->db);
		sql_pool_return(&st->readers, v->conn, ERR_OK);
	} else {
		/* Still in its transaction, it must not be used for another. */
		atomic_fetch_sub(&st->held, 1);
		sql_conn_close(v->conn);
	}
	mutex_destroy(&v->lock);
	free(v);
}

static void engine_info(struct store *s, struct store_info *ret)
{
	struct sql_store *st = sql_of(s);
	struct stat file;
	ret->upgraded_from = st->upgraded_from;
	ret->kept_copy = st->kept_copy;
	ret->abilities = STORE_CAN_VIEW | STORE_CAN_MOVE_DIRS | STORE_CAN_SPAN | STORE_COUNTS_EXACT;
	if (st->read_only)
		ret->abilities |= STORE_READ_ONLY;
	ret->log_bytes = sql_log_bytes(st);
	ret->log_rest = SQL_LOG_BYTES;
	if (fstat(st->hold_fd, &file) == 0)
		ret->bytes = (uint64_t)file.st_size + ret->log_bytes;
	ret->piece_limit = st->writer.limit_pieces;
	ret->cached_bytes = atomic_load(&st->page_bytes) + atomic_load(&st->readers.page_bytes);
	mutex_lock(&st->lock);
	ret->commits = st->commits;
	ret->change_sets = st->change_sets;
	memcpy(ret->commit_sizes, st->commit_sizes, sizeof(ret->commit_sizes));
	ret->changes = st->changes;
	ret->syncs = st->syncs;
	ret->reclaiming = sql_has_to_reclaim(st);
	ret->slices = st->slices;
	mutex_unlock(&st->lock);
	/* After `reclaiming`: once that is false, what was removed does not count any more. */
	ret->file_bytes = atomic_load(&st->file_bytes);
	ret->piece_bytes = atomic_load(&st->piece_bytes);
}

/* ---- opening and closing ---- */

static void engine_close(struct store *s)
{
	struct sql_store *st = sql_of(s);
	sql_reclaimer_stop(st);
	sql_close_files(st);
	pthread_cond_destroy(&st->reclaimer.wake);
	mutex_destroy(&st->lock);
	buf_fini(&st->note);
	free(st->kept_copy);
	free(st->path);
	free(st);
}

static void engine_give_back(struct store *s)
{
	sql_pool_give_back(&sql_of(s)->readers);
}

static const struct store_ops ops = {
	.name = "sqlite",
	.get = engine_get,
	.child = engine_child,
	.list = engine_list,
	.scan = engine_scan,
	.file_read = engine_file_read,
	.apply = sql_apply,
	.room = sql_room,
	.sync = sql_sync,
	.version_floor = engine_version_floor,
	.view_open = engine_view_open,
	.view_close = engine_view_close,
	.info = engine_info,
	.check = sql_check,
	.copy = sql_copy,
	.note_put = sql_note_put,
	.note_get = sql_note_get,
	.compact = sql_compact,
	.feed_keep = sql_feed_keep_on,
	.feed_read = sql_feed_read,
	.give_back = engine_give_back,
	.close = engine_close,
};

static struct sql_store *store_new(const char *path)
{
	struct sql_store *st = calloc(1, sizeof(*st));
	if (!st)
		return NULL;
	/* SQLite follows a link to the file: so must we to find its log beside it. */
	st->path = realpath(path, NULL);
	if (!st->path)
		st->path = strdup(path); /* missing: told when it is opened */
	if (!st->path) {
		free(st);
		return NULL;
	}
	st->base.ops = &ops;
	st->hold_fd = st->wal_fd = -1;
	st->tail = &st->head;
	st->unsynced_tail = &st->unsynced;
	st->slice_items = SQL_SLICE_ITEMS;
	st->writer.limit_file = LIMIT_FILE_BYTES;
	st->writer.limit_files = LIMIT_FILES_BYTES;
	st->writer.feed_lines = STORE_FEED_LINES;
	st->writer.feed_ticks = STORE_FEED_KEPT_TICKS;
	st->writer.limit_pieces = UINT64_MAX;
	mutex_init(&st->lock, RANK_STORE);
	pthread_cond_init(&st->reclaimer.wake, NULL);
	st->reclaimer.slice = sql_reclaim_slice;
	st->reclaimer.step = sql_shrink_step;
	st->reclaimer.shrink_after_us = SQL_SHRINK_AFTER_US;
	return st;
}

/* Who only reads has another reason, or opens what is damaged: open.c. */
static void explain(
	const struct sql_store *st, const char *path, enum err e, struct err_detail *detail)
{
	char cut[100] = "";
	if (e == ERR_THROTTLED)
		(void)err_set(detail, e,
			"cannot open %s: another program, such as sqlite3, has it open", path);
	else if (e == ERR_CORRUPT)
		(void)err_set(detail, e,
			"%s is damaged%s%s, so it cannot be written; 'rowfs check' says what can "
			"be done",
			path,
			sql_schema_cut_short(st->hold_fd, st->path, cut, sizeof(cut)) ? ": " : "",
			cut);
	else
		(void)err_set(detail, e, "cannot open %s: %s", path, err_text(e));
}

enum err sql_store_open(const char *path, unsigned flags, struct store **ret, pid_t *ret_holder,
	struct err_detail *detail)
{
	struct sql_store *st = store_new(path);
	if (!st)
		return ERR_NO_MEMORY;
	st->read_only = flags & STORE_OPEN_READ_ONLY;
	enum err e = sql_hold(st->path, st->read_only, &st->hold_fd, ret_holder, detail);
	if (e == ERR_OK)
		e = sql_schema_check_header(st->hold_fd, path, detail);
	if (e != ERR_OK) {
		engine_close(&st->base);
		return e;
	}
	e = sql_open_files(st, detail);
	if (e != ERR_OK) {
		if (detail && !detail->text[0])
			explain(st, path, e, detail);
		engine_close(&st->base);
		return e;
	}
	*ret = &st->base;
	return ERR_OK;
}

bool sql_store_set_file_limits(struct store *s, uint64_t one, uint64_t all)
{
	if (s->ops != &ops)
		return false;
	sql_of(s)->writer.limit_file = one;
	sql_of(s)->writer.limit_files = all;
	return true;
}

bool sql_store_set_feed_limits(struct store *s, uint64_t lines, int64_t ticks)
{
	if (s->ops != &ops)
		return false;
	sql_of(s)->writer.feed_lines = lines;
	sql_of(s)->writer.feed_ticks = ticks;
	return true;
}

bool sql_store_set_piece_limit(struct store *s, uint64_t all)
{
	if (s->ops != &ops)
		return false;
	sql_of(s)->writer.limit_pieces = all;
	return true;
}
