/* SPDX-License-Identifier: MIT
 * The note for the next opening.  It is the body of STORE_ROOT, written with the counters at a clean
 * close, behind the version of which it is true.  After a crash, version_high is ahead of it. */
#include "store/sqlite/rows.h"
#include "store/sqlite/store.h"

#include <string.h>

#define HEAD_BYTES sizeof(int64_t)

void sql_note_put(struct store *s, int64_t version, struct span note)
{
	struct sql_store *st = sql_of(s);
	mutex_lock(&st->lock);
	buf_fini(&st->note);
	st->note = BUF_INIT(HEAD_BYTES + STORE_NOTE_MAX);
	buf_add(&st->note, &version, HEAD_BYTES);
	buf_add_span(&st->note, note);
	if (!buf_ok(&st->note))
		buf_fini(&st->note);
	mutex_unlock(&st->lock);
}

static bool is_of(struct span body, int64_t version)
{
	return body.n > HEAD_BYTES && memcmp(body.p, &version, HEAD_BYTES) == 0;
}

enum err sql_note_write(struct sql_store *st)
{
	struct sql_writer *w = &st->writer;
	sqlite3_stmt *update;
	if (!is_of(buf_span(&st->note), atomic_load(&st->version_high)))
		return ERR_OK;
	enum err e = sql_prepare(w->conn, SQL_OBJ_BODY, &update);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(update, 1, STORE_ROOT);
	sql_bind_span(update, 2, buf_span(&st->note));
	return sql_run(w->conn, update);
}

static enum err read_note(struct sql_conn *c, int64_t version, struct buf *ret)
{
	sqlite3_stmt *get;
	enum err e = sql_prepare(c, SQL_BODY, &get);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(get, 1, STORE_ROOT);
	e = sql_first(c, get);
	if (e != ERR_OK)
		return e;
	struct span body = sql_column_span(get, 0);
	if (is_of(body, version))
		buf_add(ret, body.p + HEAD_BYTES, body.n - HEAD_BYTES);
	else
		e = ERR_NOT_FOUND;
	(void)sqlite3_reset(get);
	return e == ERR_OK ? buf_full(ret) : e;
}

enum err sql_note_get(struct store *s, struct buf *ret)
{
	struct sql_store *st = sql_of(s);
	struct sql_conn *c;
	enum err e = sql_pool_borrow(&st->readers, &c);
	if (e != ERR_OK)
		return e;
	e = read_note(c, atomic_load(&st->version_high), ret);
	sql_pool_return(&st->readers, c, e);
	return e;
}
