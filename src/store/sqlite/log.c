/* SPDX-License-Identifier: MIT
 * The write-ahead log: when it is copied into the store, and how it is kept in bounds. */
#include "base/may_block.h"
#include "store/sqlite/store.h"

#include <fcntl.h>
#include <sys/stat.h>

/* The log is copied at the commit that makes it so long; its commit waits for that. */
#define COPY_FRAMES 4000
/* Before, it is sent on its way to the disk in such pieces, so that there is little left to wait
 * for then. */
#define SEND_FRAMES 256
/* A writer that nobody waits for copies it before, beside the others. */
#define COPY_EARLY_FRAMES (COPY_FRAMES / 2)

/* Kept behind the store's end, for pages that removals add: else the log could not be copied any
 * more once a commit has used up what is free. */
#define KEPT_FOR_GROWTH (64 << 10)

/* How long writers wait for readers where the log shall begin anew. */
#define LOG_WAIT_MS 1500

uint64_t sql_log_bytes(const struct sql_store *st)
{
	struct stat log;
	return fstat(st->wal_fd, &log) == 0 ? (uint64_t)log.st_size : 0;
}

static int on_commit(void *arg, sqlite3 *db, const char *name, int frames)
{
	struct sql_store *st = arg;
	struct sql_writer *w = &st->writer;
	atomic_store(&st->log_frames, frames);
	if (frames < w->log_sent)
		w->log_sent = 0; /* it began anew */
	if (frames >= COPY_FRAMES) {
		(void)sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	} else if (frames >= w->log_sent + SEND_FRAMES) {
		w->log_sent = frames;
		(void)sync_file_range(st->wal_fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	}
	return SQLITE_OK;
}

void sql_log_watch(struct sql_store *st)
{
	(void)sqlite3_wal_hook(st->writer.conn->db, on_commit, st);
}

static bool checkpoint(struct sql_writer *w, int mode, int wait_ms)
{
	sqlite3 *db = w->conn->db;
	may_block(BLOCK_SURE);
	(void)sqlite3_busy_timeout(db, wait_ms);
	int rc = sqlite3_wal_checkpoint_v2(db, NULL, mode, NULL, NULL);
	(void)sqlite3_busy_timeout(db, SQL_BUSY_TIMEOUT_MS);
	return rc == SQLITE_OK;
}

bool sql_log_begin_anew(struct sql_writer *w, int wait_ms)
{
	return checkpoint(w, SQLITE_CHECKPOINT_RESTART, wait_ms);
}

bool sql_log_cut(struct sql_store *st, int wait_ms)
{
	if (!checkpoint(&st->writer, SQLITE_CHECKPOINT_TRUNCATE, wait_ms))
		return false;
	struct stat file;
	(void)fallocate(st->wal_fd, FALLOC_FL_KEEP_SIZE, 0, SQL_LOG_KEPT);
	if (fstat(st->hold_fd, &file) == 0)
		(void)fallocate(st->hold_fd, FALLOC_FL_KEEP_SIZE, file.st_size, KEPT_FOR_GROWTH);
	return true;
}

bool sql_log_is_long(const struct sql_store *st)
{
	return atomic_load(&st->log_frames) >= COPY_EARLY_FRAMES;
}

/* SQLite before 3.51.3 may lose commits where the log begins anew between this connection's look at
 * its length and its first copy.  The log does not begin anew under a reader that needs it.  Under
 * a reader that does not need it, nothing is copied. */
void sql_log_copy(struct sql_store *st, sqlite3 *db)
{
	struct store_view *now;
	if (store_view_open(&st->base, &now) != ERR_OK)
		return;
	may_block(BLOCK_SURE);
	(void)sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	store_view_close(&st->base, now);
}

void sql_log_bound(struct sql_store *st)
{
	if (atomic_exchange(&st->log_shrinks, false))
		(void)checkpoint(&st->writer, SQLITE_CHECKPOINT_TRUNCATE, 0);
	uint64_t n = sql_log_bytes(st), *tried = &st->writer.log_tried;
	if (n < SQL_LOG_BYTES || atomic_load(&st->held) > 0) {
		*tried = 0;
	} else if (n >= *tried + *tried / 2) {
		*tried = n;
		(void)sql_log_begin_anew(&st->writer, LOG_WAIT_MS);
	}
}
