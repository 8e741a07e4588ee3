/* SPDX-License-Identifier: MIT
 * SQLite reuses freed pages, and gives none back.  It can write a compact copy of a store (VACUUM INTO),
 * and copy pages over a store in one transaction (sqlite3_backup_step()).  Both together are what VACUUM
 * does; but its copy is in memory here (temp_store), and tells no progress.
 *
 * The copy is beside the store, with its mode, and has no name while it is read.  Its pages have no
 * checksums: they get them where the log is copied into the store. */
#include "store/sqlite/compact.h"

#include "store/sqlite/shrink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_PAGES 256
#define PAGE 4096
/* SQLite asks whether to go on after so many steps of its machine. */
#define STEPS 10000
/* How long it waits for readers at the end, to give the space of the log back. */
#define READERS_WAIT_MS 1500

struct run {
	struct sql_store *store;
	const struct sql_compaction *order;
	char path[PATH_MAX]; /* of the copy */
	uint64_t bytes;      /* that the copy will have, about */
	bool stopped;
};

static bool goes_on(struct run *r, uint64_t done)
{
	const struct sql_compaction *c = r->order;
	r->stopped = r->stopped || !c->fn(c->arg, done, 2 * r->bytes);
	return !r->stopped;
}

static int on_steps(void *arg)
{
	struct run *r = arg;
	struct stat copy;
	uint64_t done = stat(r->path, &copy) == 0 ? (uint64_t)copy.st_size : 0;
	return goes_on(r, done < r->bytes ? done : r->bytes) ? 0 : 1;
}

/* An earlier one may have been killed.  SQLite would make it for others to read. */
static enum err make_copy_file(const char *path)
{
	(void)unlink(path);
	int fd = (int)TEMP_FAILURE_RETRY(
		open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
	if (fd < 0)
		return err_from_errno(errno);
	(void)close(fd);
	return ERR_OK;
}

static enum err write_copy(struct run *r)
{
	sqlite3 *db = r->store->writer.conn->db;
	char uri[3 * PATH_MAX];
	sqlite3_stmt *st = NULL;
	if (!sql_plain_uri(r->path, uri, sizeof(uri)))
		return ERR_NAME_TOO_LONG;
	/* Of the copy; this store's own stays. */
	(void)sqlite3_exec(db, "PRAGMA auto_vacuum=INCREMENTAL", NULL, NULL, NULL);
	sqlite3_progress_handler(db, STEPS, on_steps, r);
	int rc = sqlite3_prepare_v2(db, "VACUUM INTO ?1", -1, &st, NULL);
	if (rc == SQLITE_OK) {
		(void)sqlite3_bind_text(st, 1, uri, -1, SQLITE_STATIC);
		rc = sqlite3_step(st);
	}
	enum err e = sql_error(db, rc);
	(void)sqlite3_finalize(st);
	sqlite3_progress_handler(db, 0, NULL, NULL);
	return r->stopped ? ERR_CANCELLED : e;
}

static enum err copy_back(struct run *r, sqlite3 *from)
{
	sqlite3 *db = r->store->writer.conn->db;
	sqlite3_backup *b = sqlite3_backup_init(db, "main", from, "main");
	if (b == NULL)
		return sql_error(db, sqlite3_errcode(db));
	int rc;
	while ((rc = sqlite3_backup_step(b, STEP_PAGES)) == SQLITE_OK) {
		uint64_t left = (uint64_t)sqlite3_backup_remaining(b);
		uint64_t all = (uint64_t)sqlite3_backup_pagecount(b);
		if (!goes_on(r, r->bytes + (all - left) * PAGE))
			break;
	}
	int end = sqlite3_backup_finish(b);
	if (r->stopped)
		return ERR_CANCELLED;
	return sql_error(db, rc == SQLITE_DONE ? end : rc);
}

static enum err copy_over(struct run *r)
{
	sqlite3 *from = NULL;
	char uri[3 * PATH_MAX];
	if (!sql_plain_uri(r->path, uri, sizeof(uri)))
		return ERR_NAME_TOO_LONG;
	int rc = sqlite3_open_v2(
		uri, &from, SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READONLY, NULL);
	enum err e = sql_error(from, rc);
	(void)unlink(r->path);
	if (e == ERR_OK)
		e = copy_back(r, from);
	(void)sqlite3_close(from);
	return e;
}

enum err sql_compact_now(
	struct sql_store *st, const struct sql_compaction *c, struct err_detail *detail)
{
	struct run r = { .store = st, .order = c };
	uint64_t unused = sql_free_inside(st->writer.conn);
	struct stat file;
	if ((unused == 0 && sql_can_shrink(st->writer.conn)) || fstat(st->hold_fd, &file) != 0)
		return ERR_OK;
	uint64_t all = (uint64_t)file.st_size + sql_log_bytes(st);
	r.bytes = all > unused ? all - unused : PAGE;
	const struct sql_want want = { .adds = 2 * r.bytes };
	if (!sql_has_room_beside_log(st, &want)) {
		sql_tell_room(st, detail);
		return ERR_NO_SPACE;
	}
	if (snprintf(r.path, sizeof(r.path), "%s.compact", st->path) >= (int)sizeof(r.path))
		return ERR_NAME_TOO_LONG;
	enum err e = make_copy_file(r.path);
	if (e == ERR_OK)
		e = write_copy(&r);
	if (e == ERR_OK)
		e = copy_over(&r);
	(void)unlink(r.path);
	sql_dirs_drop(&st->writer);
	/* A reader that began before needs the log: then the thread that shrinks the store cuts it later. */
	(void)sql_log_cut(st, READERS_WAIT_MS);
	sql_shrink_look(st);
	return e;
}
