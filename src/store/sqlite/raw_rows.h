/* SPDX-License-Identifier: MIT
 * The rows of a store's tables from its pages, without SQLite: first down the trees as far as their
 * pages are sound, then from the pages that no tree led to.
 *
 * How a current row is told from one that was replaced or removed: each page of a sound store is in a
 * tree, in the chain of a long record, or free.  So a page that no tree led to is current where the
 * list of free pages is whole and does not name it; it is over where its table's tree is whole.
 * Where both are damaged nothing tells: its rows are doubtful. */
#ifndef STORE_SQLITE_RAW_ROWS_H
#define STORE_SQLITE_RAW_ROWS_H

#include "base/span.h"
#include "store/sqlite/raw_pages.h"

enum raw_table {
	RAW_ITEM,
	RAW_OBJ,
	RAW_CHUNK,
	RAW_META,
	RAW_TABLES,
};

enum raw_type {
	RAW_NULL,
	RAW_INT,
	RAW_BYTES, /* BLOB or TEXT */
	RAW_OTHER,
};

struct raw_value {
	enum raw_type type;
	int64_t i;
	struct span s;
};

#define RAW_COLUMNS 11

/* Values in the order of the schema (schema.c), of the types that it asks for where NOT NULL. */
struct raw_row {
	enum raw_table table;
	bool doubtful;
	bool whole;    /* else the last column is not all there, and told as NULL */
	int64_t rowid; /* RAW_OBJ: its id */
	struct raw_value v[RAW_COLUMNS];
};

struct raw_result {
	uint64_t pages, lost; /* lost: are missing, cannot be read, or have a wrong checksum */
	uint64_t broken;      /* rows of sound pages that lead to lost ones before their keys end */
	bool damaged[RAW_TABLES];
};

/* The row is borrowed for the call; false stops: ERR_CANCELLED. */
typedef bool (*raw_row_fn)(void *arg, const struct raw_row *row);
/* Now and then: so many of so many pages. */
typedef bool (*raw_progress_fn)(void *arg, uint64_t done, uint64_t total);

/* Each row once, those of the trees first.  ERR_NO_MEMORY, ERR_CANCELLED. */
enum err raw_rows(struct raw_pages *p, raw_row_fn fn, raw_progress_fn progress, void *arg,
	struct raw_result *ret);

#endif
