/* SPDX-License-Identifier: MIT
 * One SQLite connection with its prepared statements.  Used by one thread at a time. */
#ifndef STORE_SQLITE_CONN_H
#define STORE_SQLITE_CONN_H

#include "base/err.h"
#include "base/span.h"
#include "store/store.h"

#include <sqlite3.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One process holds the file: what is waited for is a checkpoint of our own. */
#define SQL_BUSY_TIMEOUT_MS 10000

enum sql_stmt {
	SQL_BEGIN_READ,
	SQL_BEGIN,
	SQL_COMMIT,
	SQL_ROLLBACK,
	SQL_SAVEPOINT,
	SQL_ROLLBACK_TO,
	SQL_RELEASE,
	SQL_GET,
	SQL_GET_BODY,
	SQL_GET_BY_SEARCH,
	SQL_CHILD,
	SQL_CHILD_BODY,
	SQL_LIST_GT,
	SQL_LIST_GE,
	SQL_LIST_GT_KEYS,
	SQL_LIST_GE_KEYS,
	SQL_LIST_GT_BODY,
	SQL_LIST_GE_BODY,
	SQL_SCAN_GT,
	SQL_SCAN_GE,
	SQL_BODY,
	SQL_FILE_READ,
	SQL_ITEM_INSERT,
	SQL_ITEM_TRY,
	SQL_ITEM_UPDATE,
	SQL_ITEM_DELETE,
	SQL_OBJ_INSERT,
	SQL_OBJ_BODY,
	SQL_OBJ_PLACE,
	SQL_OBJ_PLACE_BODY,
	SQL_OBJ_DELETE,
	SQL_CHUNK_GET,
	SQL_CHUNK_PUT,
	SQL_CHUNK_CUT,
	SQL_CHUNK_TAIL,
	SQL_IS_REMOVED,
	SQL_FIRST_REMOVED,
	SQL_FIRST_CHILD,
	SQL_LAST_ID,
	SQL_FILE_BYTES,
	SQL_PIECE_BYTES,
	SQL_PIECE_COUNT,
	SQL_META_GET,
	SQL_META_PUT,
	SQL_FEED_ADD,
	SQL_FEED_CUT,
	SQL_FEED_AT,
	SQL_FEED_ENDS,
	SQL_FEED_LIST,
	SQL_STMT_COUNT_,
};

enum sql_mode {
	SQL_MODE_NEW, /* a writer of an empty file, which becomes a store */
	SQL_MODE_WRITER,
	SQL_MODE_READER,
	SQL_MODE_READ_ONLY, /* the file may not be written */
	SQL_MODE_IMMUTABLE, /* and needs no recovery: no lock, no log */
};

/* Removals of directories that left something to reclaim (reclaim.c): how many were begun since the
 * open, and how many of these left nothing any more.  Equal: there is nothing to reclaim. */
struct sql_removals {
	_Atomic uint64_t begun, ended;
};

enum sql_known {
	SQL_UNKNOWN,
	SQL_NO,
	SQL_YES
};

struct sql_conn {
	sqlite3 *db;
	sqlite3_stmt *st[SQL_STMT_COUNT_];
	struct sql_conn *next; /* of the pool that it rests in */
	uint64_t moment;       /* of the pool, when it was borrowed */
	struct item dir;       /* that was asked for last in this read transaction */

	store_skip_fn skip; /* of the scan that runs; else NULL: see skip.h */
	void *skip_arg;
	unsigned skipped; /* rows of this call of the scan */

	/* Of this read transaction; of the writer, until sql_dirs_drop(). */
	enum sql_known has_removed;          /* whether it sees items that stand nowhere */
	uint64_t stands;                     /* that was last found to stand; 0 */
	const struct sql_removals *removals; /* of a reader; else NULL */
	uint64_t ended;                      /* of these, before the transaction began */

	uint64_t page_bytes;        /* as of the last sql_conn_count_pages() */
	_Atomic uint64_t *page_sum; /* that they are in; NULL: in none yet */
};

enum err sql_conn_open(const char *path, enum sql_mode mode, struct sql_conn **ret);
void sql_conn_close(struct sql_conn *c); /* NULL is fine */
/* Counts the pages that the connection keeps in memory in a sum of several connections, until it is closed.
 * Called by the thread that uses the connection, always with the same sum, which outlives the connection.  Costs
 * some 20 ns. */
void sql_conn_count_pages(struct sql_conn *c, _Atomic uint64_t *sum);
/* Writes the URI of a file that SQLite opens as it is, without checksums of pages.  False: it is too long. */
bool sql_plain_uri(const char *path, char *out, size_t n);

/* The statement, prepared at its first use, reset and with no values bound. */
enum err sql_prepare(struct sql_conn *c, enum sql_stmt which, sqlite3_stmt **ret);
/* Runs a statement that gives no rows, and resets it. */
enum err sql_run(struct sql_conn *c, sqlite3_stmt *st);
/* Prepares and runs one without values. */
enum err sql_do(struct sql_conn *c, enum sql_stmt which);
/* Runs to the first row.  ERR_NOT_FOUND: there is none (the statement is reset then). */
enum err sql_first(struct sql_conn *c, sqlite3_stmt *st);
/* Ends the read transaction that it may be in. */
enum err sql_end_reading(struct sql_conn *c);
/* Free text, for set-up. */
enum err sql_exec(struct sql_conn *c, const char *text);

/* Never NULL in SQL, also for an empty span whose p is NULL; borrowed until reset. */
void sql_bind_span(sqlite3_stmt *st, int at, struct span s);
/* Borrowed until the next step; p is never NULL. */
struct span sql_column_span(sqlite3_stmt *st, int at);

/* The one translation of SQLite's codes (errors.c). */
enum err sql_error(sqlite3 *db, int rc);
/* Whether an error says that the store, not the change set, is at fault. */
bool sql_error_is_ours(enum err e);

/* Returns the number that a pragma tells; 0 where it fails. */
uint64_t sql_pragma(struct sql_conn *c, const char *text);

enum err sql_meta_get(struct sql_conn *c, const char *name, int64_t *ret);
enum err sql_meta_put(struct sql_conn *c, const char *name, int64_t value);

#endif
