/* SPDX-License-Identifier: MIT
 * The rows that a command works on: those of a store, or of an account elsewhere.  One thread at a time. */
#ifndef DAEMON_ROWS_ROWS_H
#define DAEMON_ROWS_ROWS_H

#include "cloud/rows.h"
#include "daemon/core/command.h"
#include "daemon/core/rows_out.h"
#include "service/change/change_set.h"
#include "service/query/row_query.h"
#include "service/transfer/importer.h"

/* A table, or a partition of it. */
struct rows_at {
	struct span account, table;
	const struct span *pk; /* UTF-8; NULL: the whole table */
};

/* A path of a command that names a table or a partition. */
struct rows_path {
	struct rows_at at; /* borrows from the path, and from this */
	struct span pk;
	char key[LIMIT_KEY_BYTES + 1];
};

/* --if-match: an ETag; "*": any row; "": none. */
struct row_condition {
	bool given, any, absent;
	const char *etag; /* neither "*" nor ""; NULL: one of these, or not given */
};

/* A line of a listing. */
struct rows_entry {
	enum item_kind kind;
	struct span name;
	bool has_size, has_time; /* the service elsewhere tells neither of a directory */
	uint64_t size;           /* bytes of a row, names in a directory */
	int64_t changed;         /* ticks */
	const char *etag;        /* NULL: none */
};

struct rows_listing {
	/* Takes a line; false: flush() is to be called before the next one. */
	bool (*add)(struct rows_listing *l, const struct rows_entry *entry);
	/* Prints the lines; never within a call of the store. */
	enum err (*flush)(struct rows_listing *l, struct err_detail *why);
};

struct rows {
	/* Finds ACCOUNT/TABLE or ACCOUNT/TABLE/PARTITION, with the names that a mount shows.  making:
	 * the partition need not exist.  *ret must stay where it is.  ERR_NOT_FOUND and its like; ERR_INVALID_INPUT: the path is of
	 * another kind. */
	enum err (*find)(struct cmd_env *env, const char *path, bool making, struct rows_path *ret,
		struct err_detail *why);
	/* Opens the text of all rows that match, in the order of their keys.  Takes ownership of
	 * *query, also after an error.  what: names the reader, as in views_open().  Free *ret with
	 * its close().
	 *
	 * ERR_ACCOUNT_NOT_FOUND, ERR_TABLE_NOT_FOUND; of a store ERR_NOT_FOUND for a partition.  An
	 * account elsewhere has errors of client_send(), and ERR_NOT_SUPPORTED for forms that need
	 * all rows beforehand. */
	enum err (*stream)(struct cmd_env *env, const struct rows_at *at, struct row_query *query,
		const char *what, struct row_source **ret, struct err_detail *why);
	/* Makes the table if it is not there.  *ret_id is for import(). */
	enum err (*make_table)(struct cmd_env *env, const struct rows_at *at, uint64_t *ret_id,
		struct err_detail *why);
	/* Imports all of `in`.  Errors and *counts as of import_stream(). */
	enum err (*import)(struct cmd_env *env, const struct rows_at *at, uint64_t id, FILE *in,
		const struct import_options *options, struct import_counts *counts,
		struct err_detail *why);

	/* Lists what is in a directory, or the row that the path names.  The last lines are not
	 * flushed.  ERR_NOT_FOUND and its like, ERR_CANCELLED, errors of flush(). */
	enum err (*list)(struct cmd_env *env, const char *path, struct rows_listing *l,
		struct err_detail *why);
	/* Prints a row, or an ordinary file.  keys: with its keys and Timestamp, on one line.
	 * ERR_IS_A_DIRECTORY, and the errors of finding a path. */
	enum err (*get)(struct cmd_env *env, const char *path, bool keys, struct err_detail *why);
	/* Inserts or replaces a row, or merges into it; its table is made.  etag gets the new ETag.
	 * ERR_CONDITION_NOT_MET; errors of document_check(). */
	enum err (*write)(struct cmd_env *env, const char *path, struct span text, bool merge,
		const struct row_condition *c, char etag[CLOUD_ETAG_MAX], struct err_detail *why);
	/* Removes what the path names; recursive: also a directory.  ERR_IS_A_DIRECTORY,
	 * ERR_CONDITION_NOT_MET, ERR_NOT_PERMITTED. */
	enum err (*remove)(struct cmd_env *env, const char *path, bool recursive,
		const struct row_condition *c, struct err_detail *why);
	/* Gives a row another name, over the row there; new_path may be the directory to move into.
	 * *ret_blamed is the path that an error is about; the caller frees it; NULL: memory is out. */
	enum err (*move)(struct cmd_env *env, const char *path, const char *new_path,
		char **ret_blamed, struct err_detail *why);

	/* Applies a change set, all or nothing; checked: changes nothing.  Errors as of
	 * change_set_apply(), ERR_TABLE_NOT_FOUND.  An account elsewhere has errors of client_send(), and
	 * ERR_NOT_SUPPORTED for messages and checks. */
	enum err (*apply)(struct cmd_env *env, const struct rows_at *at, struct change_set *set,
		bool checked, struct err_detail *why);
};

/* Returns the rows that the command works on. */
const struct rows *rows_of(const struct cmd_env *env);

/* Cuts the path: its account, its table, and what follows, without slashes around them. */
void rows_cut(const char *path, struct span *account, struct span *table, struct span *rest);
/* ERR_INVALID_INPUT: the path names no table or partition. */
enum err rows_not_table(struct err_detail *why);

/* ---- the two ---- */

extern const struct rows rows_of_store;     /* store_rows.c */
extern const struct rows rows_of_elsewhere; /* cloud_rows.c */

/* Opens the rows of a query of an account elsewhere as text (cloud_text.c).  filter: what the service
 * evaluates; n 0: all.  Takes ownership of *query, also after an error. */
enum err cloud_text_open(struct client *c, struct span table, struct span filter,
	struct row_query *query, struct row_source **ret, struct err_detail *why);

#endif
