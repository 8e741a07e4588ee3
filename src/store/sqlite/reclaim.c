/* SPDX-License-Identifier: MIT
 * The removal of a directory with all that is below it.  Its item moves to where nothing stands
 * (parent 0), and so what is below it is gone for every reader, however much it is: sql_stands().
 * Its space is reclaimed in slices, from the leaves up, so that what is left is a tree at any time.
 * A large ordinary file goes the same way, piece by piece. */
#include "base/clock.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/writer.h"

#include <inttypes.h>
#include <stdio.h>

/* The change set itself removes so much. */
#define AT_ONCE_ITEMS 256
#define AT_ONCE_BYTES ((uint64_t)1 << 20)
/* So many steps are made however long they take: on a busy machine, too, there is an end. */
#define LOOK_EVERY 64
/* Pieces of a file that go in one step. */
#define STEP_CHUNKS 64

static bool is_large(const struct item *it)
{
	return it->kind == ITEM_FILE && it->size > AT_ONCE_BYTES;
}

static bool is_used_up(const struct sql_slice *s)
{
	bool looks = s->done > 0 && s->done % LOOK_EVERY == 0;
	return s->items == 0 || s->bytes == 0 || (looks && clock_mono_us() >= s->until_us);
}

static void use(struct sql_slice *s, uint64_t bytes)
{
	s->items--;
	s->bytes -= bytes < s->bytes ? bytes : s->bytes;
	s->done++;
}

/* So many children of a directory went. */
static enum err count_gone(struct sql_writer *w, uint64_t dir, size_t n)
{
	struct item it;
	if (n == 0)
		return ERR_OK;
	enum err e = sql_get_any(w->conn, dir, WANT_ATTRS, &it);
	if (e != ERR_OK)
		return e;
	it.size -= n;
	e = sql_item_update(w, &it, (struct span){ NULL, 0 });
	item_fini(&it);
	return e;
}

/* Drops the file's last pieces where it has more than go in one step. */
static enum err cut_tail(struct sql_writer *w, uint64_t id, bool *ret_more)
{
	sqlite3_stmt *st;
	*ret_more = false;
	enum err e = sql_prepare(w->conn, SQL_CHUNK_TAIL, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, (int64_t)id);
	(void)sqlite3_bind_int64(st, 2, STEP_CHUNKS);
	e = sql_first(w->conn, st);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_OK : e;
	int64_t last = sqlite3_column_int64(st, 0);
	(void)sqlite3_reset(st);
	*ret_more = true;
	e = sql_prepare(w->conn, SQL_CHUNK_CUT, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, (int64_t)id);
	(void)sqlite3_bind_int64(st, 2, last + 1);
	return sql_run(w->conn, st);
}

/* A row, a file or an empty directory.  *ret_gone: false where pieces of it are left. */
static enum err drop(
	struct sql_writer *w, struct sql_slice *slice, const struct item *it, bool *ret_gone)
{
	bool more = false;
	enum err e = is_large(it) ? cut_tail(w, it->id, &more) : ERR_OK;
	use(slice, more ? (uint64_t)STEP_CHUNKS * SQL_CHUNK : item_is_dir(it->kind) ? 0 : it->size);
	*ret_gone = !more;
	return e == ERR_OK && !more ? sql_item_delete(w, it) : e;
}

/* Where a slice is: a removed item, and how many of its children went that it still counts. */
struct slice_cursor {
	uint64_t id; /* 0: at the end */
	size_t gone;
};

/* Drops the directory that the slice is at, which is empty now, and goes to the one above. */
static enum err leave(struct sql_writer *w, struct sql_slice *slice, struct slice_cursor *at)
{
	struct item it;
	bool gone;
	enum err e = sql_get_any(w->conn, at->id, WANT_ATTRS, &it);
	if (e != ERR_OK)
		return e;
	e = drop(w, slice, &it, &gone);
	if (e == ERR_OK && gone)
		*at = (struct slice_cursor){ .id = it.parent, .gone = it.parent != 0 };
	item_fini(&it);
	return e;
}

static enum err step(struct sql_writer *w, struct sql_slice *slice, struct slice_cursor *at)
{
	struct item child;
	bool gone;
	enum err e = sql_first_child(w->conn, at->id, &child);
	if (e == ERR_NOT_FOUND)
		return leave(w, slice, at);
	if (e != ERR_OK)
		return e;
	if (item_is_dir(child.kind)) {
		e = count_gone(w, at->id, at->gone);
		*at = (struct slice_cursor){ .id = child.id };
	} else {
		e = drop(w, slice, &child, &gone);
		at->gone += e == ERR_OK && gone;
	}
	item_fini(&child);
	return e;
}

/* From a removed item on, up to where it was removed.  *id: where it ended. */
static enum err reclaim_from(struct sql_writer *w, struct sql_slice *slice, uint64_t *id)
{
	struct slice_cursor at = { .id = *id };
	enum err e = ERR_OK;
	while (e == ERR_OK && at.id != 0 && !is_used_up(slice))
		e = step(w, slice, &at);
	if (e == ERR_OK && at.id != 0)
		e = count_gone(w, at.id, at.gone);
	*id = e == ERR_OK ? at.id : 0;
	return e;
}

static enum err move_aside(struct sql_writer *w, const struct item *it)
{
	char key[24];
	int n = snprintf(key, sizeof(key), "%" PRIu64, it->id);
	struct item aside = *it;
	aside.parent = 0;
	aside.class = CLASS_KEYED;
	aside.key = span_make(key, (size_t)n);
	enum err e = sql_dirs_flush(w);
	sql_dirs_drop(w);
	return e == ERR_OK ? sql_item_move(w, it, &aside, (struct span){ NULL, 0 }) : e;
}

enum err sql_remove(struct sql_writer *w, const struct item *it)
{
	uint64_t id = it->id;
	struct sql_slice slice = {
		.items = AT_ONCE_ITEMS, .bytes = AT_ONCE_BYTES, .until_us = UINT64_MAX
	};
	if (!is_large(it) && (!item_is_dir(it->kind) || it->size == 0))
		return sql_item_delete(w, it);
	enum err e = move_aside(w, it);
	if (e == ERR_OK)
		e = reclaim_from(w, &slice, &id);
	if (e == ERR_OK && id != 0) {
		/* Before the commit: a reader who sees it asks what still stands. */
		atomic_fetch_add(&w->removals->begun, 1);
		w->conn->has_removed = SQL_UNKNOWN;
	}
	return e;
}

/* Any removed item; *id: 0 where there is none. */
static enum err find_removed(struct sql_writer *w, uint64_t *id)
{
	sqlite3_stmt *st;
	*id = 0;
	enum err e = sql_prepare(w->conn, SQL_FIRST_REMOVED, &st);
	if (e == ERR_OK)
		e = sql_first(w->conn, st);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_OK : e;
	*id = (uint64_t)sqlite3_column_int64(st, 0);
	(void)sqlite3_reset(st);
	return ERR_OK;
}

enum err sql_reclaim(struct sql_writer *w, struct sql_slice *slice, bool *ret_all)
{
	uint64_t id = w->reclaim_at;
	enum err e = id != 0 ? sql_stands(w->conn, id) : ERR_OK;
	*ret_all = false;
	w->reclaim_at = 0;
	/* Whatever happened since: what stands is never touched.  After another error the transaction
	 * may have ended. */
	if (e == ERR_OK)
		id = 0;
	else if (e == ERR_NOT_FOUND)
		e = ERR_OK;
	while (e == ERR_OK && !*ret_all && !is_used_up(slice)) {
		if (id == 0)
			e = find_removed(w, &id);
		*ret_all = e == ERR_OK && id == 0;
		if (e == ERR_OK && id != 0)
			e = reclaim_from(w, slice, &id);
	}
	w->reclaim_at = e == ERR_OK ? id : 0;
	w->conn->has_removed = SQL_UNKNOWN;
	return e;
}

void sql_all_reclaimed(struct sql_writer *w)
{
	w->conn->ended = atomic_load(&w->removals->begun); /* nobody else adds to it */
	atomic_store(&w->removals->ended, w->conn->ended);
}
