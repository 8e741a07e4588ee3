/* SPDX-License-Identifier: MIT
 * The feed of changes: a table of which row came or went, in the order of the commits.  Each line is
 * written by the transaction that it tells of.  It is kept while somebody reads it (store_feed_keep()),
 * since a line costs a commit a page more.
 *
 *   feed        never without a line once it was begun, so that a number is never used again
 *   feed_begin  meta: number of the line with which the present feed began; earlier lines are
 *               of a feed that nobody read any more, and go
 *   feed_until  meta: the first change after this time ends the feed; 0: it has ended */
#include "store/sqlite/feed.h"

#include "store/sqlite/rows.h"
#include "store/sqlite/store.h"

/* So many old lines go with each change at most: twice as many as come. */
#define CUT_LINES 2

static const char make_table[] =
	"CREATE TABLE IF NOT EXISTS feed(n INTEGER PRIMARY KEY, version INTEGER NOT NULL,"
	" tab INTEGER NOT NULL, kind INTEGER NOT NULL, pk BLOB, rk BLOB) STRICT";

/* ---- writing ---- */

static enum err load_ends(struct sql_conn *c, struct sql_feed_state *ret)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(c, SQL_FEED_ENDS, &st);
	if (e == ERR_OK)
		e = sql_first(c, st);
	if (e != ERR_OK)
		return e;
	ret->first = (uint64_t)sqlite3_column_int64(st, 0);
	ret->next = (uint64_t)sqlite3_column_int64(st, 1) + 1;
	ret->second_version = sqlite3_column_int64(st, 2); /* 0 if NULL */
	(void)sqlite3_reset(st);
	return ERR_OK;
}

enum err sql_feed_load(struct sql_conn *c, struct sql_feed_state *ret)
{
	int64_t begin;
	*ret = (struct sql_feed_state){ 0 };
	enum err e = sql_meta_get(c, "feed_begin", &begin);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_OK : e;
	ret->begin = (uint64_t)begin;
	e = sql_meta_get(c, "feed_until", &ret->until);
	return e == ERR_OK ? load_ends(c, ret) : e;
}

static enum err add_line(struct sql_writer *w, const struct store_feed_line *l)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(w->conn, SQL_FEED_ADD, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, (int64_t)w->now.feed.next);
	(void)sqlite3_bind_int64(st, 2, l->at.version);
	(void)sqlite3_bind_int64(st, 3, (int64_t)l->table);
	(void)sqlite3_bind_int(st, 4, (int)l->kind);
	if (l->pk.p != NULL)
		sql_bind_span(st, 5, l->pk);
	if (l->rk.p != NULL)
		sql_bind_span(st, 6, l->rk);
	e = sql_run(w->conn, st);
	if (e != ERR_OK)
		return e;
	w->now.feed.next++;
	if (w->now.feed.next - w->now.feed.first == 2)
		w->now.feed.second_version = l->at.version;
	return ERR_OK;
}

static enum err set_until(struct sql_writer *w, int64_t until)
{
	enum err e = sql_meta_put(w->conn, "feed_until", until);
	if (e == ERR_OK)
		w->now.feed.until = until;
	return e;
}

enum err sql_feed_keep(struct sql_writer *w, int64_t now, int64_t until)
{
	if (w->now.feed.until != 0)
		return set_until(w, until);
	const struct store_feed_line begin = { .at.version = now, .kind = STORE_FEED_BEGIN };
	enum err e = ERR_OK;
	if (w->now.feed.next == 0) {
		e = sql_exec(w->conn, make_table);
		w->now.feed = (struct sql_feed_state){ .first = 1, .next = 1 };
	}
	uint64_t n = w->now.feed.next;
	if (e == ERR_OK)
		e = add_line(w, &begin);
	if (e == ERR_OK)
		e = sql_meta_put(w->conn, "feed_begin", (int64_t)n);
	w->now.feed.begin = n;
	return e == ERR_OK ? set_until(w, until) : e;
}

/* A reader that stands at the earliest line has missed nothing while the line after it is kept, however old
 * its own line is. */
static bool is_old(const struct sql_writer *w, int64_t version)
{
	const struct sql_feed_state *f = &w->now.feed;
	uint64_t lines = f->next - f->first;
	return lines > 1 &&
		(f->until == 0 || f->first < f->begin || lines > w->feed_lines ||
			version - f->second_version > w->feed_ticks);
}

static enum err cut_first(struct sql_writer *w)
{
	struct sql_feed_state *f = &w->now.feed;
	sqlite3_stmt *st;
	enum err e = sql_prepare(w->conn, SQL_FEED_CUT, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, (int64_t)f->first + 1);
	e = sql_run(w->conn, st);
	return e == ERR_OK ? load_ends(w->conn, f) : e;
}

/* No change pays for many lines. */
static enum err cut(struct sql_writer *w, int64_t version)
{
	enum err e = ERR_OK;
	for (int i = 0; i < CUT_LINES && e == ERR_OK && is_old(w, version); i++)
		e = cut_first(w);
	return e;
}

static enum err add(struct sql_writer *w, const struct store_feed_line *l)
{
	int64_t version = l->at.version, until = w->now.feed.until;
	enum err e = ERR_OK;
	if (until != 0 && version > until)
		e = set_until(w, 0);
	else if (until != 0)
		e = add_line(w, l);
	return e == ERR_OK ? cut(w, version) : e;
}

static enum err tell(struct sql_writer *w, enum store_feed_kind kind, const struct item *it)
{
	struct store_feed_line l = { .kind = kind, .at.version = w->set[w->at].version };
	struct sql_dir *dir;
	if (w->now.feed.next == 0 || item_is_empty_row(it) ||
		(it->kind != ITEM_ROW && it->kind != ITEM_PARTITION))
		return ERR_OK;
	if (it->kind == ITEM_PARTITION) {
		l.table = it->parent;
		l.pk = it->key;
		return it->size > 0 ? add(w, &l) : ERR_OK;
	}
	enum err e = sql_dir_get(w, it->parent, &dir);
	if (e != ERR_OK || dir->it.kind != ITEM_PARTITION)
		return e;
	l.table = dir->it.parent;
	l.pk = dir->it.key;
	l.rk = it->key;
	return add(w, &l);
}

enum err sql_feed_put(struct sql_writer *w, const struct item *it)
{
	return tell(w, STORE_FEED_PUT, it);
}

enum err sql_feed_gone(struct sql_writer *w, const struct item *it)
{
	return tell(w, STORE_FEED_DELETE, it);
}

enum err sql_feed_moved(struct sql_writer *w, const struct item *was, const struct item *will)
{
	bool same = was->kind == will->kind && was->parent == will->parent &&
		span_eq(was->key, will->key);
	enum err e = same ? ERR_OK : sql_feed_gone(w, was);
	return e == ERR_OK ? sql_feed_put(w, will) : e;
}

/* ---- reading ---- */

static enum err version_at(struct sql_conn *c, uint64_t n, int64_t *ret)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(c, SQL_FEED_AT, &st);
	if (e == ERR_OK) {
		(void)sqlite3_bind_int64(st, 1, (int64_t)n);
		e = sql_first(c, st);
	}
	if (e != ERR_OK)
		return e;
	*ret = sqlite3_column_int64(st, 0);
	(void)sqlite3_reset(st);
	return ERR_OK;
}

/* Where to begin.  All of what is kept: behind the line before the first one. */
static enum err find_start(
	struct sql_conn *c, const struct store_feed_position *after, uint64_t *ret)
{
	struct sql_feed_state f;
	int64_t version;
	enum err e = sql_feed_load(c, &f);
	if (e != ERR_OK)
		return e;
	if (f.until == 0)
		return ERR_FEED_GONE;
	uint64_t first = f.first > f.begin ? f.first : f.begin;
	*ret = after != NULL ? after->number : first - 1;
	if (after == NULL)
		return ERR_OK;
	e = after->number < first ? ERR_NOT_FOUND : version_at(c, after->number, &version);
	if (e == ERR_OK && version != after->version)
		e = ERR_NOT_FOUND;
	return e == ERR_NOT_FOUND ? ERR_FEED_GONE : e;
}

static struct span column(sqlite3_stmt *st, int at)
{
	return sqlite3_column_type(st, at) == SQLITE_NULL ? (struct span){ NULL, 0 }
							  : sql_column_span(st, at);
}

static enum err list(struct sql_conn *c, uint64_t after, store_feed_fn fn, void *arg)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(c, SQL_FEED_LIST, &st);
	if (e == ERR_OK) {
		(void)sqlite3_bind_int64(st, 1, (int64_t)after);
		e = sql_first(c, st);
	}
	for (bool more = e == ERR_OK; more;) {
		const struct store_feed_line l = {
			.at = { (uint64_t)sqlite3_column_int64(st, 0),
				sqlite3_column_int64(st, 1) },
			.table = (uint64_t)sqlite3_column_int64(st, 2),
			.kind = (enum store_feed_kind)sqlite3_column_int(st, 3),
			.pk = column(st, 4),
			.rk = column(st, 5),
		};
		more = fn(arg, &l) && sqlite3_step(st) == SQLITE_ROW;
	}
	if (e == ERR_OK && sqlite3_reset(st) != SQLITE_OK)
		e = sql_error(c->db, sqlite3_errcode(c->db));
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

enum err sql_feed_read(
	struct store *s, const struct store_feed_position *after, store_feed_fn fn, void *arg)
{
	struct sql_store *st = sql_of(s);
	struct sql_conn *c;
	uint64_t start;
	enum err e = sql_pool_borrow(&st->readers, &c);
	if (e != ERR_OK)
		return e;
	e = find_start(c, after, &start);
	if (e == ERR_OK)
		e = list(c, start, fn, arg);
	sql_pool_return(&st->readers, c, e);
	return e;
}
