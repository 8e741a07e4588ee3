/* SPDX-License-Identifier: MIT
 * Makes a new store of a damaged one.  Records of the old one go into the new one's tables as they
 * come; then these are mended.  The new one is nobody's until it has its name, so it needs no
 * durability on the way. */
#include "store/sqlite/salvage.h"

#include "base/clock.h"
#include "store/sqlite/engine.h"
#include "store/sqlite/hold.h"
#include "store/sqlite/raw_rows.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMIT_EVERY 8192

/* ---- taking rows over ---- */

static enum err prepare(struct sql_salvage *s, const char *sql, sqlite3_stmt **ret)
{
	return sql_error(s->c->db, sqlite3_prepare_v2(s->c->db, sql, -1, ret, NULL));
}

static enum err prepare_all(struct sql_salvage *s)
{
	/* One version of each: the later one.  A sound store has one only. */
	enum err e = prepare(s,
		"INSERT INTO item VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)"
		" ON CONFLICT DO UPDATE SET id=excluded.id,kind=excluded.kind,"
		"version=excluded.version,edition=excluded.edition,size=excluded.size,"
		"flags=excluded.flags,attrs=excluded.attrs,name=excluded.name"
		" WHERE excluded.version>version",
		&s->item);
	if (e == ERR_OK)
		e = prepare(s, "INSERT OR IGNORE INTO obj VALUES(?1,?2,?3,?4,?5)", &s->obj);
	if (e == ERR_OK)
		e = prepare(s, "INSERT OR IGNORE INTO chunk VALUES(?1,?2,?3)", &s->chunk);
	if (e == ERR_OK)
		e = prepare(s,
			"SELECT 1 FROM obj WHERE id=(?4" SALVAGE_OBJ_ID ") AND parent=?1 AND"
			" class=?2 AND key=?3 AND (?5 NOT IN (4,8,12) OR length(body)=?8)",
			&s->agrees);
	return e;
}

static void finalize_all(struct sql_salvage *s)
{
	(void)sqlite3_finalize(s->item);
	(void)sqlite3_finalize(s->obj);
	(void)sqlite3_finalize(s->chunk);
	(void)sqlite3_finalize(s->agrees);
	s->item = s->obj = s->chunk = s->agrees = NULL;
}

static void bind(sqlite3_stmt *st, int at, const struct raw_value *v)
{
	if (v->type == RAW_INT)
		(void)sqlite3_bind_int64(st, at, v->i);
	else if (v->type == RAW_BYTES)
		sql_bind_span(st, at, v->s);
	else
		(void)sqlite3_bind_null(st, at);
}

static bool has_row(struct sql_salvage *s, sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);
	(void)sqlite3_reset(st);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		s->error = sql_error(s->c->db, rc);
	return rc == SQLITE_ROW;
}

static void take(struct sql_salvage *s, sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);
	(void)sqlite3_reset(st);
	if (rc != SQLITE_DONE && (rc & 0xff) != SQLITE_CONSTRAINT)
		s->error = sql_error(s->c->db, rc);
	if (s->error == ERR_OK && ++s->taken % COMMIT_EVERY == 0)
		s->error = sql_exec(s->c, "COMMIT; BEGIN");
}

static void bind_all(sqlite3_stmt *st, const struct raw_row *row, int n)
{
	for (int i = 0; i < n; i++)
		bind(st, i + 1, &row->v[i]);
}

/* A folder that every store has: the new one has it, too, and takes its times. */
static bool is_fixed(const struct raw_row *row)
{
	static const char *const keys[] = { "", "root", "rejected", "trash", "orphans" };
	int64_t id = row->v[3].i;
	return id >= STORE_ROOT && id <= STORE_ORPHANS && row->v[0].i == 0 &&
		row->v[1].i == CLASS_NAMED && row->v[4].i == ITEM_FOLDER && !row->doubtful &&
		span_is(row->v[2].s, keys[id]);
}

static void take_item(struct sql_salvage *s, const struct raw_row *row)
{
	if ((row->v[3].i <= STORE_ID_FIRST || row->v[0].i < STORE_ROOT) && !is_fixed(row))
		return;
	/* A document that is current vouches for its item. */
	if (row->doubtful && !s->to->take_doubtful) {
		bind_all(s->agrees, row, 8);
		if (!has_row(s, s->agrees))
			return;
	}
	bind_all(s->item, row, 11);
	if (s->error == ERR_OK)
		take(s, s->item);
}

static void take_obj(struct sql_salvage *s, const struct raw_row *row)
{
	if (row->rowid <= STORE_ID_FIRST || row->rowid >= INT64_C(1) << STORE_ID_BITS)
		return;
	if (row->doubtful) {
		s->to->doubtful++;
		if (!s->to->take_doubtful)
			return;
	}
	bind_all(s->obj, row, 5);
	(void)sqlite3_bind_int64(s->obj, 1, row->rowid);
	take(s, s->obj);
}

static void take_chunk(struct sql_salvage *s, const struct raw_row *row)
{
	if (row->doubtful && !s->to->take_doubtful)
		return;
	bind_all(s->chunk, row, 3);
	take(s, s->chunk);
}

static void take_meta(struct sql_salvage *s, const struct raw_row *row)
{
	int64_t *to = span_is(row->v[0].s, "next_id")  ? &s->next_id
		: span_is(row->v[0].s, "version_high") ? &s->version_high
						       : NULL;
	if (to != NULL && row->v[1].i > *to)
		*to = row->v[1].i;
}

static bool on_row(void *arg, const struct raw_row *row)
{
	struct sql_salvage *s = arg;
	s->seen = true;
	switch (row->table) {
	case RAW_ITEM:
		take_item(s, row);
		break;
	case RAW_OBJ:
		take_obj(s, row);
		break;
	case RAW_CHUNK:
		take_chunk(s, row);
		break;
	case RAW_META:
		take_meta(s, row);
		break;
	case RAW_TABLES:
		break;
	}
	return s->error == ERR_OK;
}

static bool tell_progress(const struct sql_salvage *s)
{
	return s->to->progress == NULL || s->to->progress(s->to->arg, s->done, s->total);
}

static bool on_pages(void *arg, uint64_t done, uint64_t total)
{
	struct sql_salvage *s = arg;
	s->done = done;
	s->total = total;
	return tell_progress(s);
}

/* While SQLite is at work, also between two pages. */
static int on_work(void *arg)
{
	return tell_progress(arg) ? 0 : 1;
}

static enum err read_all(struct sql_salvage *s, struct raw_pages *pages)
{
	struct raw_result result = { 0 };
	enum err e = prepare_all(s);
	if (e == ERR_OK && !on_pages(s, 0, pages->should))
		e = ERR_CANCELLED;
	if (e == ERR_OK)
		e = raw_rows(pages, on_row, on_pages, s, &result);
	finalize_all(s);
	s->to->pages = s->done = result.pages;
	s->to->lost_pages = result.lost;
	s->to->broken = result.broken;
	s->pieces_lost = result.damaged[RAW_CHUNK] || result.broken > 0 || result.lost > 0;
	if (s->error != ERR_OK)
		return s->error;
	return e == ERR_OK && !s->seen ? ERR_NOT_A_STORE : e;
}

/* ---- the new store ---- */

static enum err finish(struct sql_salvage *s)
{
	enum err e = sql_exec(s->c, "COMMIT");
	return e == ERR_OK ? sql_exec(s->c, "PRAGMA wal_checkpoint(TRUNCATE)") : e;
}

static enum err fill(struct sql_salvage *s, struct raw_pages *pages)
{
	/* The notes that mending makes on the way may be as large as the store. */
	sqlite3_progress_handler(s->c->db, 100000, on_work, s);
	enum err e = sql_exec(s->c, "PRAGMA synchronous=OFF; PRAGMA temp_store=FILE; BEGIN");
	if (e == ERR_OK)
		e = read_all(s, pages);
	if (e == ERR_OK)
		e = sql_salvage_mend(s);
	if (e == ERR_OK)
		e = sql_salvage_mend_rows(s);
	if (e == ERR_OK)
		e = sql_schema_empty_rows(s->c);
	return e == ERR_OK ? finish(s) : e;
}

static enum err sync_file(const char *path)
{
	int fd = (int)TEMP_FAILURE_RETRY(open(path, O_RDWR | O_CLOEXEC));
	enum err e = fd >= 0 && TEMP_FAILURE_RETRY(fsync(fd)) == 0 ? ERR_OK : err_from_errno(errno);
	if (fd >= 0)
		(void)close(fd);
	return e;
}

static void remove_all(const char *path)
{
	static const char *const tails[] = { "", "-wal", "-shm", "-journal" };
	char name[PATH_MAX + 16];
	for (size_t i = 0; i < ARRAY_LEN(tails); i++)
		if (snprintf(name, sizeof(name), "%s%s", path, tails[i]) < (int)sizeof(name))
			(void)unlink(name);
}

static enum err make(
	struct sql_salvage *s, struct raw_pages *pages, const char *to, struct err_detail *detail)
{
	enum err e = sql_store_create(to, detail);
	if (e != ERR_OK)
		return e;
	e = sql_conn_open(to, SQL_MODE_NEW, &s->c);
	if (e == ERR_OK)
		e = fill(s, pages);
	sql_conn_close(s->c);
	if (e == ERR_OK)
		e = sync_file(to);
	if (e != ERR_OK)
		remove_all(to);
	return e;
}

/* -1: there is none. */
static int open_log(const char *from)
{
	char path[PATH_MAX], log[PATH_MAX + 8];
	if (realpath(from, path) == NULL)
		return -1;
	(void)snprintf(log, sizeof(log), "%s-wal", path);
	return (int)TEMP_FAILURE_RETRY(open(log, O_RDONLY | O_CLOEXEC));
}

enum err sql_store_salvage(
	const char *from, const char *to, struct store_salvage *s, struct err_detail *detail)
{
	struct raw_pages pages = { 0 };
	struct sql_salvage work = { .to = s, .now = clock_ticks() };
	int fd = -1, log;
	enum err e = sql_hold(from, true, &fd, NULL, detail);
	if (e != ERR_OK)
		return e;
	log = open_log(from);
	e = raw_pages_init(&pages, fd, log);
	if (e == ERR_OK)
		e = make(&work, &pages, to, detail);
	if (e == ERR_NOT_A_STORE)
		(void)err_set(detail, e, "no page of %s is one of a rowfs store", from);
	raw_pages_fini(&pages);
	if (log >= 0)
		(void)close(log);
	(void)close(fd);
	return e;
}
