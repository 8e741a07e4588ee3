/* SPDX-License-Identifier: MIT
 * A salvage under way: the new store, whose tables take what is read of the damaged one as it is
 * (salvage.c), and are then made to agree with each other (salvage_mend.c, salvage_rows.c). */
#ifndef STORE_SQLITE_SALVAGE_H
#define STORE_SQLITE_SALVAGE_H

#include "model/limits.h"
#include "store/engines.h"
#include "store/sqlite/conn.h"

struct sql_salvage {
	struct store_salvage *to;
	struct sql_conn *c;
	sqlite3_stmt *item, *obj, *chunk, *agrees;
	bool seen;            /* anything of a store */
	uint64_t taken;       /* rows, to commit now and then */
	uint64_t done, total; /* pages, for the progress */
	enum err error;
	int64_t now; /* the version of what has lost its own */
	int64_t next_id, version_high;
	bool pieces_lost; /* of ordinary files: a piece that is missing was not always a hole */

	/* Of the directory that was asked for last. */
	uint64_t named;
	char account[LIMIT_KEY_BYTES], table[LIMIT_KEY_BYTES], pk[LIMIT_KEY_BYTES],
		rk[LIMIT_KEY_BYTES];
	struct store_loss at;
};

/* The size of a directory whose own was lost, until all is counted. */
#define SALVAGE_UNKNOWN "-1"
#define SALVAGE_DIRS "(1,2,3,6,7,9,10,11)" /* item_is_dir() */
/* In SQL: the place of an item and that of a document row are the same. */
#define SALVAGE_AT(i_, o_) \
	" " i_ ".parent=" o_ ".parent AND " i_ ".class=" o_ ".class AND " i_ ".key=" o_ ".key "
#define SALVAGE_OBJ_ID "&549755813887" /* sql_obj_id() */

typedef enum err (*sql_salvage_fn)(struct sql_salvage *s, sqlite3_stmt *st);
/* Calls fn for each row that the statement gives. */
enum err sql_salvage_each(struct sql_salvage *s, const char *sql, sql_salvage_fn fn);
/* Tells that the child with this key of a directory was lost; of the directory itself: key.p NULL. */
void sql_salvage_lose(struct sql_salvage *s, uint64_t parent, enum item_class class,
	struct span key, const char *why);

/* Inside a transaction, in this order. */
enum err sql_salvage_mend(struct sql_salvage *s);
enum err sql_salvage_mend_rows(struct sql_salvage *s);

#endif
