/* SPDX-License-Identifier: MIT
 * Items as SQLite rows, and every way to read them: on any connection, for any caller. */
#ifndef STORE_SQLITE_ROWS_H
#define STORE_SQLITE_ROWS_H

#include "store/sqlite/conn.h"
#include "store/store.h"

/* Ordinary files are kept in pieces of this size; a missing piece or a short one's end
 * reads as zeros. */
#define SQL_CHUNK 16384

/* *ret owns its memory.  ERR_NOT_FOUND.  WANT_BODY in want. */
enum err sql_get(struct sql_conn *c, uint64_t id, unsigned want, struct item *ret);
enum err sql_child(struct sql_conn *c, uint64_t parent, enum item_class class, struct span key,
	unsigned want, struct item *ret);
enum err sql_list(struct sql_conn *c, uint64_t parent, enum item_class class, struct span after,
	bool inclusive, unsigned want, store_list_fn fn, void *arg, bool *ret_more);
enum err sql_file_read(
	struct sql_conn *c, uint64_t id, uint64_t offset, void *out, size_t n, size_t *ret_n);

/* Binds ?1 to ?11 of SQL_ITEM_INSERT and SQL_ITEM_UPDATE.  attrs_mem holds the packed
 * attributes until the statement is reset. */
#define SQL_ATTRS_BYTES 28
void sql_bind_item(sqlite3_stmt *st, const struct item *it, uint8_t attrs_mem[SQL_ATTRS_BYTES]);

#endif
