/* SPDX-License-Identifier: MIT
 * What is opened of a store that is held: the connections, the log beside it, the counters.
 * Where it is only read, the log is left as it is found. */
#include "base/lock.h"
#include "base/new_file.h"
#include "store/sqlite/feed.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/shrink.h"
#include "store/sqlite/store.h"
#include "store/sqlite/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- closing ---- */

/* Gives back the ids and versions that were reserved ahead, and empties the log. */
static void save_and_checkpoint(struct sql_store *st)
{
	struct sql_writer *w = &st->writer;
	int64_t high = atomic_load(&st->version_high);
	if (sql_do(w->conn, SQL_BEGIN) == ERR_OK) {
		if (sql_meta_put(w->conn, "next_id", (int64_t)w->next_id) != ERR_OK ||
			sql_meta_put(w->conn, "version_high", high) != ERR_OK ||
			sql_note_write(st) != ERR_OK || sql_do(w->conn, SQL_COMMIT) != ERR_OK)
			(void)sql_do(w->conn, SQL_ROLLBACK);
	}
	(void)sql_exec(w->conn, "PRAGMA wal_checkpoint(TRUNCATE)");
}

/* Where the log was read without being replayed SQLite left its index.  Ours is in memory, and
 * nobody else has the store open. */
static void drop_index(const struct sql_store *st)
{
	char index[PATH_MAX + 8]; /* the path was opened: it fits */
	(void)snprintf(index, sizeof(index), "%s-shm", st->path);
	(void)unlink(index);
}

void sql_close_files(struct sql_store *st)
{
	sql_pool_fini(&st->readers);
	if (st->writer.conn) {
		sql_dirs_drop(&st->writer);
		item_fini(&st->writer.memo_key);
		if (st->wal_fd >= 0 && st->writer.next_id > 0) /* else they were never read */
			save_and_checkpoint(st);
	}
	if (st->wal_fd >= 0)
		(void)close(st->wal_fd);
	sql_conn_close(st->writer.conn);
	if (st->has_index)
		drop_index(st);
	if (st->hold_fd >= 0)
		(void)close(st->hold_fd);
}

/* ---- opening ---- */

static bool has_log(const char *path)
{
	struct stat st;
	char log[PATH_MAX + 8];
	(void)snprintf(log, sizeof(log), "%s-wal", path);
	return stat(log, &st) == 0 && st.st_size > 0;
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
	int64_t next_id = 0, high = 0;
	uint64_t bytes = 0, pieces = 0;
	int schema = 0;
	struct sql_feed_state feed = { 0 };
	enum err e = sql_meta_get(c, "next_id", &next_id);
	if (e == ERR_OK)
		e = sql_meta_get(c, "version_high", &high);
	if (e == ERR_OK)
		e = sql_file_bytes(c, &bytes);
	if (e == ERR_OK)
		e = sql_piece_bytes(c, &pieces);
	if (e == ERR_NOT_FOUND)
		e = sql_piece_count(c, &pieces);
	if (e == ERR_OK)
		e = sql_schema_version(c, &schema);
	if (e == ERR_OK)
		e = check_next_id(c, &next_id);
	if (e == ERR_OK)
		e = sql_feed_load(c, &feed);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_CORRUPT : e;
	st->writer.next_id = (uint64_t)next_id;
	st->writer.now = (struct sql_counters){
		.id_reserved = (uint64_t)next_id,
		.version_reserved = high,
		.file_bytes = bytes,
		.file_bytes_saved = bytes,
		.piece_bytes = pieces,
		.piece_bytes_saved = pieces,
		.schema = schema,
		.feed = feed,
	};
	atomic_store(&st->version_high, high);
	atomic_store(&st->file_bytes, bytes);
	atomic_store(&st->feed_until, feed.until);
	atomic_store(&st->piece_bytes, pieces);
	return ERR_OK;
}

static enum err open_read_only(struct sql_store *st, struct err_detail *detail)
{
	/* We hold the store, so nobody changes it: where no log waits to be replayed, SQLite
	 * needs no lock and leaves no trace. */
	bool log = has_log(st->path);
	struct sql_conn *c = NULL;
	st->has_index = log;
	enum err e = sql_pool_init(
		&st->readers, st->path, log ? SQL_MODE_READ_ONLY : SQL_MODE_IMMUTABLE);
	if (e == ERR_OK)
		e = sql_pool_borrow(&st->readers, &c);
	if (e == ERR_OK)
		e = load_counters(c, st);
	if (c)
		sql_pool_return(&st->readers, c, e);
	/* Who only reads needs no counters, and may find much that is sound. */
	if (e == ERR_CORRUPT && !log)
		e = ERR_OK;
	if (e != ERR_OK && log)
		return err_set(detail, e == ERR_CORRUPT || e == ERR_NO_MEMORY ? e : ERR_READ_ONLY,
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
	st->wal_fd = (int)TEMP_FAILURE_RETRY(open(log, O_RDWR | O_CLOEXEC));
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
	return e == ERR_OK ? new_file_sync_name(st->path) : e;
}

/* The first write makes the log; it also shows early that the store can be written. */
static enum err open_writer(struct sql_store *st, struct err_detail *detail)
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
		e = sql_upgrade(st, detail);
	if (e == ERR_OK)
		e = sql_do(w->conn, SQL_BEGIN);
	if (e == ERR_OK) {
		w->now.id_reserved = w->next_id + SQL_ID_BLOCK;
		e = sql_meta_put(w->conn, "next_id", (int64_t)w->now.id_reserved);
		if (e == ERR_OK)
			e = sql_do(w->conn, SQL_COMMIT);
		if (e == ERR_NO_SPACE && has_log(st->path)) {
			/* A full disk: reading works, and writing will when there is space. */
			w->now.id_reserved = w->next_id;
			e = ERR_OK;
		}
		if (!sqlite3_get_autocommit(w->conn->db))
			(void)sql_do(w->conn, SQL_ROLLBACK);
	}
	if (e == ERR_OK)
		e = open_log(st);
	if (e == ERR_OK) {
		drop_index(st);
		sql_log_watch(st);
	}
	/* Who was killed with a view held left a large one. */
	if (e == ERR_OK && sql_log_bytes(st) > SQL_LOG_BYTES)
		(void)sql_exec(w->conn, "PRAGMA wal_checkpoint(TRUNCATE)");
	return e == ERR_OK ? sql_pool_init(&st->readers, st->path, SQL_MODE_READER) : e;
}

/* Looks whether an earlier process left anything to reclaim.  In a damaged file that does not matter. */
static void find_removed(struct sql_store *st)
{
	struct sql_conn *c = st->writer.conn;
	sqlite3_stmt *found;
	if (st->read_only && sql_pool_borrow(&st->readers, &c) != ERR_OK)
		return;
	enum err e = sql_prepare(c, SQL_FIRST_REMOVED, &found);
	if (e == ERR_OK)
		e = sql_first(c, found);
	if (e == ERR_OK) {
		(void)sqlite3_reset(found);
		atomic_store(&st->readers.removals.begun, 1);
	}
	if (st->read_only)
		sql_pool_return(&st->readers, c, e);
}

enum err sql_open_files(struct sql_store *st, struct err_detail *detail)
{
	enum err e = st->read_only ? open_read_only(st, detail) : open_writer(st, detail);
	if (e != ERR_OK)
		return e;
	if (!st->read_only) {
		st->writer.removals = &st->readers.removals;
		st->writer.conn->removals = &st->readers.removals;
	}
	find_removed(st);
	if (!st->read_only)
		sql_shrink_look(st);
	mutex_lock(&st->lock);
	sql_reclaimer_wake(st);
	mutex_unlock(&st->lock);
	return ERR_OK;
}
