/* SPDX-License-Identifier: MIT
 * Items as SQLite rows, and every way to read them: on any connection, for any caller. */
#ifndef STORE_SQLITE_ROWS_H
#define STORE_SQLITE_ROWS_H

#include "store/rules.h"
#include "store/sqlite/conn.h"
#include "store/store.h"

/* One call of sql_list() or sql_scan() reads about so many items, so that no reader holds the write-ahead log
 * back for long. */
#define SQL_LIST_MAX 1024
/* Ordinary files are kept in pieces of this size; a missing piece or a short one's end
 * reads as zeros. */
#define SQL_CHUNK 16384
/* An ordinary file that is made, or grows, up to this size is kept in its document row: one page
 * less to write, and a row that becomes a file leaves its bytes where they are.  A row of that
 * size fits on one page whatever its key is. */
#define SQL_INLINE 3072
/* In item.flags, inside the engine only: the file is kept so; there are no pieces. */
#define SQL_IS_INLINE 0x100u
static inline bool sql_is_small(uint64_t size)
{
	return size > 0 && size <= SQL_INLINE;
}

/* The number of an item's document row, which goes over to the file that a row leaves behind. */
static inline int64_t sql_obj_id(uint64_t id)
{
	return (int64_t)(id & (RULES_ID_LEFT - 1));
}

/* Whether an item is below one of the directories that every store has: ERR_OK, or ERR_NOT_FOUND,
 * where it is removed and its space not reclaimed yet.  It must be there, or have been.  Readers: after
 * another read, which fixed the moment. */
enum err sql_stands(struct sql_conn *c, uint64_t id);

/* *ret owns its memory.  ERR_NOT_FOUND.  WANT_BODY in want.  Removed items are not found. */
enum err sql_get(struct sql_conn *c, uint64_t id, unsigned want, struct item *ret);
/* The same, also for removed items. */
enum err sql_get_any(struct sql_conn *c, uint64_t id, unsigned want, struct item *ret);
/* The first one that a directory has, of either class, without body; also of what does not stand. */
enum err sql_first_child(struct sql_conn *c, uint64_t parent, struct item *ret);
enum err sql_child(struct sql_conn *c, uint64_t parent, enum item_class class, struct span key,
	unsigned want, struct item *ret);
enum err sql_list(struct sql_conn *c, uint64_t parent, enum item_class class, struct span after,
	bool inclusive, unsigned want, store_list_fn fn, void *arg, bool *ret_more);
/* As sql_list() with WANT_BODY, of the items for which skip(arg) returns false. */
enum err sql_scan(struct sql_conn *c, uint64_t parent, enum item_class class, struct span after,
	bool inclusive, store_skip_fn skip, store_list_fn fn, void *arg, bool *ret_more);
enum err sql_file_read(
	struct sql_conn *c, uint64_t id, uint64_t offset, void *out, size_t n, size_t *ret_n);

/* The sum of the files' sizes. */
enum err sql_file_bytes(struct sql_conn *c, uint64_t *ret);
/* The sum of the pieces of blobs, as the store has it; ERR_NOT_FOUND: a store from before it had one. */
enum err sql_piece_bytes(struct sql_conn *c, uint64_t *ret);
/* The same, counted piece by piece. */
enum err sql_piece_count(struct sql_conn *c, uint64_t *ret);

/* Binds ?1 to ?11 of SQL_ITEM_INSERT and SQL_ITEM_UPDATE.  mem holds what is packed
 * until the statement is reset. */
#define SQL_ATTRS_BYTES 36
#define SQL_ATTRS_PLAIN \
	28 /* without attrs.if_match, which few files have; all that was written
				  before there was one */
/* item.born, in the column of the name, which rows and files have none of. */
#define SQL_BORN_BYTES 8
#define SQL_BOUND_BYTES (SQL_ATTRS_BYTES + SQL_BORN_BYTES)
void sql_bind_item(sqlite3_stmt *st, const struct item *it, uint8_t mem[SQL_BOUND_BYTES]);

#endif
