/* SPDX-License-Identifier: MIT
 * The SQLite engine: making a store, opening, reading, views, closing.  Writing is in
 * commit.c and below it. */
#include "store/sqlite/engine.h"

#include "base/clock.h"
#include "model/limits.h"
#include "store/engines.h"
#include "store/rules.h"
#include "store/sqlite/create.h"
#include "store/sqlite/hold.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* By so much the log must have grown under held views to be brought back when one ends. */
#define LOG_GROWN_BYTES ((uint64_t)1 << 20)

/* A connection that stays inside one read transaction. */
struct store_view {
	struct sql_conn *conn;
	bool held;
	pthread_mutex_t lock; /* a connection serves one thread at a time */
};

/* ---- reading ---- */

static enum err reader(struct store *s, struct store_view *v, struct sql_conn **ret)
{
	if (!v)
		return sql_pool_borrow(&sql_of(s)->readers, ret);
	pthread_mutex_lock(&v->lock);
	*ret = v->conn;
	return ERR_OK;
}

static void done_reading(struct store *s, struct store_view *v, struct sql_conn *c)
{
	if (v)
		pthread_mutex_unlock(&v->lock);
	else
		sql_pool_return(&sql_of(s)->readers, c);
}

static enum err engine_get(
	struct store *s, struct store_view *v, uint64_t id, unsigned want, struct item *ret)
{
	struct sql_conn *c;
	enum err e = reader(s, v, &c);
	if (e != ERR_OK)
		return e;
	e = sql_get(c, id, want, ret);
	done_reading(s, v, c);
	if (e == ERR_OK)
		ret->flags &= ITEM_FLAGS_PUBLIC;
	return e;
}

static enum err engine_child(struct store *s, struct store_view *v, uint64_t parent,
	enum item_class class, struct span key, unsigned want, struct item *ret)
{
	struct sql_conn *c;
	enum err e = reader(s, v, &c);
	if (e != ERR_OK)
		return e;
	e = sql_child(c, parent, class, key, want, ret);
	done_reading(s, v, c);
	if (e == ERR_OK)
		ret->flags &= ITEM_FLAGS_PUBLIC;
	return e;
}

static enum err engine_list(struct store *s, struct store_view *v, uint64_t parent,
	enum item_class class, struct span after, bool inclusive, unsigned want, store_list_fn fn,
	void *arg, bool *ret_more)
{
	struct sql_conn *c;
	enum err e = reader(s, v, &c);
	if (e != ERR_OK)
		return e;
	e = sql_list(c, parent, class, after, inclusive, want, fn, arg, ret_more);
	done_reading(s, v, c);
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
	done_reading(s, v, c);
	return e;
}

static int64_t engine_version_floor(struct store *s)
{
	return atomic_load(&sql_of(s)->version_high);
}

static enum err engine_view_open(struct store *s, bool held, struct store_view **ret)
{
	struct sql_store *st = sql_of(s);
	struct store_view *v = calloc(1, sizeof(*v));
	int64_t ignored;
	if (!v)
		return ERR_NO_MEMORY;
	enum err e = sql_pool_borrow(&st->readers, &v->conn);
	if (e == ERR_OK)
		e = sql_do(v->conn, SQL_BEGIN_READ);
	/* The first read fixes the moment. */
	if (e == ERR_OK)
		e = sql_meta_get(v->conn, "next_id", &ignored);
	if (e != ERR_OK) {
		sql_conn_close(v->conn);
		free(v);
		return e;
	}
	pthread_mutex_init(&v->lock, NULL);
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
		(void)sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	if (atomic_fetch_sub(&st->held, 1) != 1 || !grown)
		return;
	(void)sqlite3_busy_timeout(db, 0);
	(void)sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	(void)sqlite3_busy_timeout(db, SQL_BUSY_TIMEOUT_MS);
}

static void engine_view_close(struct store *s, struct store_view *v)
{
	struct sql_store *st = sql_of(s);
	/* A connection that is still in a transaction must not be used for another. */
	bool closed = sql_do(v->conn, SQL_COMMIT) == ERR_OK;
	if (v->held && closed)
		let_go(st, v->conn->db);
	else if (v->held)
		atomic_fetch_sub(&st->held, 1);
	if (closed)
		sql_pool_return(&st->readers, v->conn);
	else
		sql_conn_close(v->conn);
	pthread_mutex_destroy(&v->lock);
	free(v);
}

struct sql_conn *sql_view_conn(struct store_view *v)
{
	return v->conn;
}

static void engine_info(struct store *s, struct store_info *ret)
{
	struct sql_store *st = sql_of(s);
	struct stat file;
	ret->abilities = STORE_CAN_VIEW | STORE_CAN_MOVE_DIRS | STORE_CAN_SPAN | STORE_COUNTS_EXACT;
	if (st->read_only)
		ret->abilities |= STORE_READ_ONLY;
	ret->log_bytes = sql_log_bytes(st);
	ret->log_rest = SQL_LOG_BYTES;
	if (fstat(st->hold_fd, &file) == 0)
		ret->bytes = (uint64_t)file.st_size + ret->log_bytes;
	ret->file_bytes = atomic_load(&st->file_bytes);
	pthread_mutex_lock(&st->lock);
	ret->commits = st->commits;
	ret->change_sets = st->change_sets;
	memcpy(ret->commit_sizes, st->commit_sizes, sizeof(ret->commit_sizes));
	ret->changes = st->changes;
	ret->syncs = st->syncs;
	pthread_mutex_unlock(&st->lock);
}

/* ---- closing ---- */

/* Gives back what was reserved ahead, and leaves no log behind. */
static void settle(struct sql_store *st)
{
	struct sql_writer *w = &st->writer;
	int64_t high = atomic_load(&st->version_high);
	if (sql_do(w->conn, SQL_BEGIN) == ERR_OK) {
		if (sql_meta_put(w->conn, "next_id", (int64_t)w->next_id) != ERR_OK ||
			sql_meta_put(w->conn, "version_high", high) != ERR_OK ||
			sql_do(w->conn, SQL_COMMIT) != ERR_OK)
			(void)sql_do(w->conn, SQL_ROLLBACK);
	}
	(void)sql_exec(w->conn, "PRAGMA wal_checkpoint(TRUNCATE)");
}

/* Of whatever an open has come to. */
static void engine_close(struct store *s)
{
	struct sql_store *st = sql_of(s);
	sql_pool_fini(&st->readers);
	if (st->writer.conn) {
		sql_dirs_drop(&st->writer);
		item_fini(&st->writer.memo_key);
		if (st->wal_fd >= 0)
			settle(st);
	}
	if (st->wal_fd >= 0)
		(void)close(st->wal_fd);
	sql_conn_close(st->writer.conn);
	if (st->hold_fd >= 0)
		(void)close(st->hold_fd);
	pthread_mutex_destroy(&st->lock);
	pthread_cond_destroy(&st->sync_done);
	free(st->path);
	free(st);
}

static const struct store_ops ops = {
	.name = "sqlite",
	.get = engine_get,
	.child = engine_child,
	.list = engine_list,
	.file_read = engine_file_read,
	.apply = sql_apply,
	.sync = sql_sync,
	.version_floor = engine_version_floor,
	.view_open = engine_view_open,
	.view_close = engine_view_close,
	.info = engine_info,
	.check = sql_check,
	.close = engine_close,
};

/* ---- opening ---- */

static bool has_log(const char *path)
{
	struct stat st;
	char *log;
	if (asprintf(&log, "%s-wal", path) < 0)
		return true;
	bool has = stat(log, &st) == 0 && st.st_size > 0;
	free(log);
	return has;
}

/* The counter is right in every store that is not damaged; that an id is never used again
 * is worth a look. */
static enum err check_next_id(struct sql_conn *c, int64_t *next_id)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(c, SQL_LAST_ID, &st);
	if (e == ERR_OK)
		e = sql_first(c, st);
	if (e != ERR_OK)
		return e;
	int64_t last = sqlite3_column_int64(st, 0);
	(void)sqlite3_reset(st);
	if (*next_id <= last)
		*next_id = last + 1;
	return ERR_OK;
}

static enum err load_counters(struct sql_conn *c, struct sql_store *st)
{
	int64_t next_id = 0, high = 0, bytes = 0;
	enum err e = sql_meta_get(c, "next_id", &next_id);
	if (e == ERR_OK)
		e = sql_meta_get(c, "version_high", &high);
	if (e == ERR_OK)
		e = sql_meta_get(c, "file_bytes", &bytes);
	if (e == ERR_OK)
		e = check_next_id(c, &next_id);
	st->writer.next_id = (uint64_t)next_id;
	st->writer.now = (struct sql_counters){
		.id_reserved = (uint64_t)next_id,
		.version_reserved = high,
		.file_bytes = (uint64_t)bytes,
		.file_bytes_saved = (uint64_t)bytes,
	};
	atomic_store(&st->version_high, high);
	atomic_store(&st->file_bytes, (uint64_t)bytes);
	return e == ERR_NOT_FOUND ? ERR_CORRUPT : e;
}

static enum err open_read_only(struct sql_store *st, struct err_detail *detail)
{
	/* We hold the store, so nobody changes it: where no log waits to be replayed, SQLite
	 * needs no lock and leaves no trace. */
	bool log = has_log(st->path);
	struct sql_conn *c = NULL;
	enum err e = sql_pool_init(
		&st->readers, st->path, log ? SQL_MODE_READ_ONLY : SQL_MODE_IMMUTABLE);
	if (e == ERR_OK)
		e = sql_pool_borrow(&st->readers, &c);
	if (e == ERR_OK)
		e = load_counters(c, st);
	if (c)
		sql_pool_return(&st->readers, c);
	if (e != ERR_OK && log)
		return err_set(detail, e == ERR_CORRUPT ? e : ERR_READ_ONLY,
			"%s was not closed cleanly and must be opened for writing once", st->path);
	return e;
}

/* The log's descriptor, locked like the store itself: where the store file was replaced while
 * it was served, the log still belongs to who serves the old one. */
static enum err take_log(struct sql_store *st)
{
	char *log;
	if (st->wal_fd >= 0)
		return ERR_OK;
	if (asprintf(&log, "%s-wal", st->path) < 0)
		return ERR_NO_MEMORY;
	st->wal_fd = open(log, O_RDWR | O_CLOEXEC);
	enum err e = st->wal_fd < 0 ? err_from_errno(errno) : ERR_OK;
	free(log);
	if (e == ERR_OK && flock(st->wal_fd, LOCK_EX | LOCK_NB) != 0)
		e = errno == EWOULDBLOCK ? ERR_BUSY : err_from_errno(errno);
	return e;
}

/* The log that SQLite made, and its name on disk. */
static enum err open_log(struct sql_store *st)
{
	enum err e = take_log(st);
	return e == ERR_OK ? sql_sync_directory(st->path) : e;
}

/* The first write makes the log; it also shows early that the store can be written. */
static enum err open_writer(struct sql_store *st)
{
	struct sql_writer *w = &st->writer;
	enum err e = take_log(st);
	if (e == ERR_NOT_FOUND) /* closed cleanly */
		e = ERR_OK;
	if (e == ERR_OK)
		e = sql_conn_open(st->path, SQL_MODE_WRITER, &w->conn);
	if (e == ERR_OK)
		e = load_counters(w->conn, st);
	if (e == ERR_OK)
		e = sql_do(w->conn, SQL_BEGIN);
	if (e == ERR_OK) {
		w->now.id_reserved = w->next_id + SQL_ID_BLOCK;
		e = sql_meta_put(w->conn, "next_id", (int64_t)w->now.id_reserved);
		if (e == ERR_OK)
			e = sql_do(w->conn, SQL_COMMIT);
		if (e == ERR_NO_SPACE) {
			/* A full disk: reading works, and writing will when there is space. */
			w->now.id_reserved = w->next_id;
			e = ERR_OK;
		}
		if (!sqlite3_get_autocommit(w->conn->db))
			(void)sql_do(w->conn, SQL_ROLLBACK);
	}
	if (e == ERR_OK)
		e = open_log(st);
	/* Who was killed with a view held left a large one. */
	if (e == ERR_OK && sql_log_bytes(st) > SQL_LOG_BYTES)
		(void)sql_exec(w->conn, "PRAGMA wal_checkpoint(TRUNCATE)");
	return e == ERR_OK ? sql_pool_init(&st->readers, st->path, SQL_MODE_READER) : e;
}

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
	st->writer.limit_file = LIMIT_FILE_BYTES;
	st->writer.limit_files = LIMIT_FILES_BYTES;
	pthread_mutex_init(&st->lock, NULL);
	pthread_cond_init(&st->sync_done, NULL);
	return st;
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
	e = st->read_only ? open_read_only(st, detail) : open_writer(st);
	if (e != ERR_OK) {
		if (detail && !detail->text[0])
			(void)err_set(detail, e, "cannot open %s: %s", path, err_text(e));
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
