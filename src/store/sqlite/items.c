/* SPDX-License-Identifier: MIT
 * Single items on the writing side: the statements that make, rewrite, move and remove
 * one.  No rule of store.h is decided here. */
#include "store/sqlite/rows.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/writer.h"

#include <inttypes.h>
#include <stdio.h>

enum err sql_item_new_id(struct sql_writer *w, uint64_t *ret)
{
	if (w->next_id >= RULES_ID_LEFT)
		return ERR_NO_SPACE;
	if (w->next_id >= w->now.id_reserved) {
		uint64_t up_to = w->next_id + SQL_ID_BLOCK;
		enum err e = sql_meta_put(w->conn, "next_id", (int64_t)up_to);
		if (e != ERR_OK)
			return e;
		w->now.id_reserved = up_to;
	}
	*ret = w->next_id++;
	return ERR_OK;
}

static enum err write_item(struct sql_writer *w, enum sql_stmt which, const struct item *it)
{
	sqlite3_stmt *st;
	uint8_t mem[SQL_BOUND_BYTES];
	enum err e = sql_prepare(w->conn, which, &st);
	if (e != ERR_OK)
		return e;
	sql_bind_item(st, it, mem);
	char sums[2 * 24];
	if (it->id == STORE_TRASH)
		(void)sqlite3_bind_blob(st, 11, sums,
			snprintf(sums, sizeof(sums), "%" PRIu64 " %" PRIu64, w->now.file_bytes,
				w->now.piece_bytes),
			SQLITE_STATIC);
	e = sql_run(w->conn, st);
	if (e == ERR_OK && sqlite3_changes(w->conn->db) != 1)
		e = ERR_CORRUPT;
	if (e == ERR_OK && it->id == STORE_TRASH) {
		w->now.file_bytes_saved = w->now.file_bytes;
		w->now.piece_bytes_saved = w->now.piece_bytes;
	}
	return e;
}

static void bind_body(sqlite3_stmt *st, int at, struct span body)
{
	if (body.p)
		sql_bind_span(st, at, body);
	else
		(void)sqlite3_bind_null(st, at);
}

static enum err insert_obj(struct sql_writer *w, const struct item *it, struct span body)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(w->conn, SQL_OBJ_INSERT, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, sql_obj_id(it->id));
	(void)sqlite3_bind_int64(st, 2, (int64_t)it->parent);
	(void)sqlite3_bind_int(st, 3, (int)it->class);
	sql_bind_span(st, 4, it->key);
	bind_body(st, 5, body);
	return sql_run(w->conn, st);
}

enum err sql_item_insert(struct sql_writer *w, const struct item *it, struct span body)
{
	enum err e = write_item(w, SQL_ITEM_INSERT, it);
	return e != ERR_OK ? e : insert_obj(w, it, body);
}

enum err sql_item_try_insert(struct sql_writer *w, const struct item *it, struct span body)
{
	enum err e = write_item(w, SQL_ITEM_TRY, it);
	/* No row was changed. */
	if (e == ERR_CORRUPT && sqlite3_errcode(w->conn->db) == SQLITE_OK)
		return ERR_NAME_EXISTS;
	return e != ERR_OK ? e : insert_obj(w, it, body);
}

enum err sql_item_set_body(struct sql_writer *w, uint64_t id, struct span body)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(w->conn, SQL_OBJ_BODY, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, sql_obj_id(id));
	bind_body(st, 2, body);
	return sql_run(w->conn, st);
}

enum err sql_item_update(struct sql_writer *w, const struct item *it, struct span body)
{
	enum err e = write_item(w, SQL_ITEM_UPDATE, it);
	if (e == ERR_OK && body.p)
		e = sql_item_set_body(w, it->id, body);
	return e;
}

static enum err delete_place(struct sql_writer *w, const struct item *it)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(w->conn, SQL_ITEM_DELETE, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, (int64_t)it->parent);
	(void)sqlite3_bind_int(st, 2, (int)it->class);
	sql_bind_span(st, 3, it->key);
	return sql_run(w->conn, st);
}

enum err sql_item_move(
	struct sql_writer *w, const struct item *from, const struct item *it, struct span body)
{
	enum err e = delete_place(w, from);
	if (e == ERR_OK)
		e = write_item(w, SQL_ITEM_INSERT, it);
	sqlite3_stmt *st = NULL;
	if (e == ERR_OK)
		e = sql_prepare(w->conn, body.p ? SQL_OBJ_PLACE_BODY : SQL_OBJ_PLACE, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, sql_obj_id(it->id));
	(void)sqlite3_bind_int64(st, 2, (int64_t)it->parent);
	(void)sqlite3_bind_int(st, 3, (int)it->class);
	sql_bind_span(st, 4, it->key);
	if (body.p)
		sql_bind_span(st, 5, body);
	return sql_run(w->conn, st);
}

static enum err run_by_id(struct sql_writer *w, enum sql_stmt which, uint64_t id)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(w->conn, which, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, (int64_t)id);
	return sql_run(w->conn, st);
}

enum err sql_item_take_out(struct sql_writer *w, const struct item *it)
{
	enum err e = delete_place(w, it);
	return e == ERR_OK ? run_by_id(w, SQL_OBJ_DELETE, (uint64_t)sql_obj_id(it->id)) : e;
}
