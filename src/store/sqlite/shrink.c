/* SPDX-License-Identifier: MIT
 * SQLite can move the last page of a file to a free place and then forget it (incremental vacuum), if the
 * file has a map of who points to each page.  Files have that from the start, or since a compaction.
 *
 * Some free pages stay: what is written next takes their places, and a store that grows and shrinks around
 * one size writes no page twice. */
#include "store/sqlite/shrink.h"

#include "base/clock.h"
#include "store/sqlite/page_sum.h"

#include <sys/stat.h>

/* So much stays, and beyond that a share of what is in use. */
#define KEPT_PAGES 256
#define KEPT_SHARE 8

/* Commits that write so many pages can have freed as many. */
#define LOOK_FRAMES 256

/* One step takes no longer, and moves no more pages. */
#define STEP_US 2000
#define STEP_PAGES 128
/* Between two looks at the time. */
#define MOVE "PRAGMA incremental_vacuum(8)"
#define MOVE_PAGES 8

bool sql_can_shrink(struct sql_conn *c)
{
	return sql_pragma(c, "PRAGMA auto_vacuum") == 2;
}

static bool has_many(struct sql_conn *c)
{
	uint64_t unused = sql_pragma(c, "PRAGMA freelist_count");
	return unused > KEPT_PAGES &&
		unused > (sql_pragma(c, "PRAGMA page_count") - unused) / KEPT_SHARE;
}

void sql_shrink_look(struct sql_store *st)
{
	struct sql_conn *c = st->writer.conn;
	struct stat file;
	int left = SHRINK_DONE;
	if (has_many(c) && sql_can_shrink(c))
		left = SHRINK_MOVE;
	else if (fstat(st->hold_fd, &file) == 0 &&
		(uint64_t)file.st_size > sql_pragma(c, "PRAGMA page_count") * PAGE_BYTES)
		left = SHRINK_CUT;
	st->writer.looked_at = atomic_load(&st->log_frames);
	atomic_store(&st->shrink, left);
}

void sql_shrink_look_again(struct sql_store *st)
{
	int frames = atomic_load(&st->log_frames), looked = st->writer.looked_at;
	if (frames < looked || frames >= looked + LOOK_FRAMES)
		sql_shrink_look(st);
}

static enum err move_pages(struct sql_conn *c)
{
	uint64_t until = clock_mono_us() + STEP_US;
	enum err e = ERR_OK;
	for (unsigned n = 0; e == ERR_OK && n < STEP_PAGES; n += MOVE_PAGES) {
		if (clock_mono_us() >= until || !has_many(c))
			break;
		e = sql_exec(c, MOVE);
	}
	return e;
}

static enum err commit_moves(struct sql_store *st)
{
	struct sql_conn *c = st->writer.conn;
	/* Each move writes a few pages: the moved one, what points to it, the map. */
	const struct sql_want want = { .adds = 4 * STEP_PAGES * PAGE_BYTES };
	if (!sql_has_room_beside_log(st, &want))
		return ERR_NO_SPACE;
	enum err e = sql_do(c, SQL_BEGIN);
	if (e == ERR_OK)
		e = move_pages(c);
	if (e == ERR_OK)
		e = sql_do(c, SQL_COMMIT);
	if (e != ERR_OK && !sqlite3_get_autocommit(c->db))
		(void)sql_do(c, SQL_ROLLBACK);
	return e;
}

enum err sql_shrink_now(struct sql_store *st)
{
	int left = atomic_load(&st->shrink);
	enum err e = left == SHRINK_MOVE ? commit_moves(st) : ERR_OK;
	if (left == SHRINK_CUT)
		(void)sql_log_cut(st, 0);
	if (e == ERR_OK)
		sql_shrink_look(st);
	return e;
}
