/* SPDX-License-Identifier: MIT
 * The content of ordinary files: of small ones in the document row, of others in pieces of
 * SQL_CHUNK bytes.  A piece ends where its data ends, never behind the file's end, so that
 * what a file grows into reads as zeros.  A file moves into pieces when it outgrows its
 * document row, and never back; an empty one is neither. */
#include "store/sqlite/rows.h"
#include "store/sqlite/writer.h"

#include <string.h>

enum err sql_files_grow(struct sql_writer *w, uint64_t from, uint64_t to)
{
	uint64_t sum = w->now.file_bytes - from + to;
	if (to > from && sum > w->limit_files)
		return ERR_QUOTA;
	w->now.file_bytes = sum;
	return ERR_OK;
}

enum err sql_pieces_grow(struct sql_writer *w, uint64_t from, uint64_t to)
{
	uint64_t sum = w->now.piece_bytes - from + to;
	if (to > from && sum > w->limit_pieces)
		return ERR_BLOB_SPACE;
	w->now.piece_bytes = sum;
	return ERR_OK;
}

static enum err put_chunk(struct sql_writer *w, uint64_t id, uint64_t n, struct span data)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(w->conn, SQL_CHUNK_PUT, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, (int64_t)id);
	(void)sqlite3_bind_int64(st, 2, (int64_t)n);
	sql_bind_span(st, 3, data);
	return sql_run(w->conn, st);
}

/* The piece as it is, 0 bytes where there is none. */
static enum err get_chunk(
	struct sql_writer *w, uint64_t id, uint64_t n, char out[SQL_CHUNK], size_t *ret_n)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(w->conn, SQL_CHUNK_GET, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, (int64_t)id);
	(void)sqlite3_bind_int64(st, 2, (int64_t)n);
	e = sql_first(w->conn, st);
	*ret_n = 0;
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_OK : e;
	struct span s = sql_column_span(st, 0);
	*ret_n = s.n < SQL_CHUNK ? s.n : SQL_CHUNK;
	memcpy(out, s.p, *ret_n);
	(void)sqlite3_reset(st);
	return ERR_OK;
}

/* Overwrites [at, at + data.n) of one piece. */
static enum err patch_chunk(
	struct sql_writer *w, uint64_t id, uint64_t n, size_t at, struct span data)
{
	char piece[SQL_CHUNK];
	size_t len;
	if (at == 0 && data.n == SQL_CHUNK)
		return put_chunk(w, id, n, data);
	enum err e = get_chunk(w, id, n, piece, &len);
	if (e != ERR_OK)
		return e;
	if (at > len)
		memset(piece + len, 0, at - len);
	memcpy(piece + at, data.p, data.n);
	if (at + data.n > len)
		len = at + data.n;
	return put_chunk(w, id, n, span_make(piece, len));
}

static enum err write_chunks(struct sql_writer *w, uint64_t id, uint64_t offset, struct span data)
{
	while (data.n > 0) {
		size_t at = (size_t)(offset % SQL_CHUNK);
		size_t n = SQL_CHUNK - at < data.n ? SQL_CHUNK - at : data.n;
		enum err e = patch_chunk(w, id, offset / SQL_CHUNK, at, (struct span){ data.p, n });
		if (e != ERR_OK)
			return e;
		data = (struct span){ data.p + n, data.n - n };
		offset += n;
	}
	return ERR_OK;
}

static enum err cut_chunks(struct sql_writer *w, uint64_t id, uint64_t size)
{
	size_t rest = (size_t)(size % SQL_CHUNK), len;
	uint64_t n = size / SQL_CHUNK;
	if (rest > 0) {
		char piece[SQL_CHUNK];
		enum err e = get_chunk(w, id, n, piece, &len);
		if (e == ERR_OK && len > rest)
			e = put_chunk(w, id, n, span_make(piece, rest));
		if (e != ERR_OK)
			return e;
		n++;
	}
	sqlite3_stmt *st;
	enum err e = sql_prepare(w->conn, SQL_CHUNK_CUT, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, (int64_t)id);
	(void)sqlite3_bind_int64(st, 2, (int64_t)n);
	return sql_run(w->conn, st);
}

/* ---- in the document row ---- */

static bool is_inline(const struct item *it)
{
	return (it->flags & SQL_IS_INLINE) != 0;
}

static enum err get_inline(struct sql_writer *w, uint64_t id, char out[SQL_INLINE], size_t *ret_n)
{
	sqlite3_stmt *st;
	*ret_n = 0;
	enum err e = sql_prepare(w->conn, SQL_BODY, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, sql_obj_id(id));
	e = sql_first(w->conn, st);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_CORRUPT : e;
	struct span s = sql_column_span(st, 0);
	*ret_n = s.n < SQL_INLINE ? s.n : SQL_INLINE;
	memcpy(out, s.p, *ret_n);
	(void)sqlite3_reset(st);
	return ERR_OK;
}

static enum err write_inline(
	struct sql_writer *w, struct item *it, uint64_t offset, struct span data)
{
	char whole[SQL_INLINE];
	size_t n = 0, at = (size_t)offset;
	bool all = at == 0 && data.n >= it->size;
	enum err e = is_inline(it) && !all ? get_inline(w, it->id, whole, &n) : ERR_OK;
	if (e != ERR_OK)
		return e;
	if (at > n)
		memset(whole + n, 0, at - n);
	memcpy(whole + at, data.p, data.n);
	if (at + data.n > n)
		n = at + data.n;
	it->flags |= SQL_IS_INLINE;
	return sql_item_set_body(w, it->id, span_make(whole, n));
}

static enum err cut_inline(struct sql_writer *w, struct item *it, size_t size)
{
	char whole[SQL_INLINE];
	size_t n;
	if (size == 0) {
		it->flags &= ~SQL_IS_INLINE;
		return sql_item_set_body(w, it->id, (struct span){ NULL, 0 });
	}
	enum err e = get_inline(w, it->id, whole, &n);
	return e == ERR_OK && n > size ? sql_item_set_body(w, it->id, span_make(whole, size)) : e;
}

static enum err outgrow_inline(struct sql_writer *w, struct item *it)
{
	char whole[SQL_INLINE];
	size_t n;
	enum err e = get_inline(w, it->id, whole, &n);
	if (e == ERR_OK && n > 0)
		e = put_chunk(w, it->id, 0, span_make(whole, n));
	if (e == ERR_OK)
		e = sql_item_set_body(w, it->id, (struct span){ NULL, 0 });
	it->flags &= ~SQL_IS_INLINE;
	return e;
}

/* ---- either ---- */

enum err sql_content_write(struct sql_writer *w, struct item *it, uint64_t offset, struct span data)
{
	if (data.n == 0)
		return ERR_OK;
	bool small = offset < SQL_INLINE && data.n <= SQL_INLINE - offset;
	if (small && (is_inline(it) || it->size == 0))
		return write_inline(w, it, offset, data);
	enum err e = is_inline(it) ? outgrow_inline(w, it) : ERR_OK;
	return e == ERR_OK ? write_chunks(w, it->id, offset, data) : e;
}

enum err sql_content_cut(struct sql_writer *w, struct item *it, uint64_t size)
{
	if (is_inline(it))
		return size < SQL_INLINE ? cut_inline(w, it, (size_t)size) : ERR_OK;
	return cut_chunks(w, it->id, size);
}

enum err sql_content_drop(struct sql_writer *w, const struct item *it)
{
	w->now.file_bytes -= it->size;
	return is_inline(it) || it->size == 0 ? ERR_OK : cut_chunks(w, it->id, 0);
}
