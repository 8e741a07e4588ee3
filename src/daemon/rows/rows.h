/* SPDX-License-Identifier: MIT
 * The rows that a command works on: those of a store, or of an account elsewhere.  One thread at a time. */
#ifndef DAEMON_ROWS_ROWS_H
#define DAEMON_ROWS_ROWS_H

#include "daemon/core/command.h"
#include "daemon/core/rows_out.h"
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

struct rows {
	/* Finds ACCOUNT/TABLE or ACCOUNT/TABLE/PARTITION, with the names that a mount shows.  *ret
	 * must stay where it is.  ERR_NOT_FOUND and its like; ERR_INVALID_INPUT: the path is of
	 * another kind. */
	enum err (*find)(struct cmd_env *env, const char *path, struct rows_path *ret,
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
