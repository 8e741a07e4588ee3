/* SPDX-License-Identifier: MIT
 * One question to the service about a directory, and its rows on their way into the shadow.  Private to
 * cloudstore/. */
#ifndef CLOUDSTORE_QUESTION_H
#define CLOUDSTORE_QUESTION_H

#include "cloud/row_scan.h"
#include "cloudstore/merge.h"
#include "cloudstore/refresh.h"
#include "model/limits.h"

#define PAGE_ROWS 1000 /* of the service, at most */
#define FILTER_LIMIT ((size_t)16 << 10)

/* One question, about a directory. */
struct refresh {
	struct cloudstore *s;
	const struct item *dir; /* of the shadow: the account, a table or a partition */
	struct span rows;       /* the partition whose lock is held, */
	bool has_rows;          /* else that of the directory's names is */
	struct client *client;
	struct item table; /* a copy */
	char pk[LIMIT_KEY_BYTES];
	size_t pk_len;
	uint64_t asked_us;
	bool away; /* the error is that the service did not answer */
	struct merge merge;
	void *arg; /* of the function that takes the rows */
	struct err_detail why;
};

/* Locks the directory and begins a merge of it at `from`.  Call refresh_end() also after an error. */
enum err refresh_begin(
	struct refresh *r, struct cloudstore *s, const struct item *dir, struct span from);
/* The same for the name of one partition in a table.  Questions for other names may go on at once. */
enum err refresh_begin_name(
	struct refresh *r, struct cloudstore *s, const struct item *table, struct span pk);
/* Returns e as a reader has it, and logs it. */
enum err refresh_error(struct cloudstore *s, enum err e, const struct err_detail *why);
/* Unlocks the directory.  Returns refresh_error(). */
enum err refresh_end(struct refresh *r, enum err e);
/* The partition's key, in UTF-8. */
struct span refresh_pk(const struct refresh *r);

/* Appends `what` ("RowKey ge") and a key in UTF-8 to a filter. */
void refresh_add_comparison(struct buf *out, const char *what, struct span key);
/* Appends that a property is `from` or later.  `from` is in order form; a NUL at its end: behind the key
 * before it. */
void refresh_add_from(struct buf *out, const char *property, struct span from);

typedef enum err (*refresh_take_fn)(struct refresh *r, const struct cloud_row *row);

/* Gives the rows of a scan to a function.  *ret_end: there were no more, or none in this answer (row_scan.stops). */
enum err refresh_read(
	struct refresh *r, struct row_scan *rows, refresh_take_fn take, bool *ret_end);
/* Gives the rows of a query to a function, `most` at most (0: all).  *ret_end: there were no more. */
enum err refresh_scan(struct refresh *r, const struct buf *filter, const char *select,
	unsigned most, refresh_take_fn take, bool *ret_end);
/* Ends the merge at the last row, or with ret->end at the end of the directory, and confirms that part of it. */
enum err refresh_end_part(struct refresh *r, uint64_t dir, struct span from, struct refreshed *ret);
/* Takes a whole row into the merge of its partition. */
enum err refresh_take_row(struct refresh *r, const struct cloud_row *row);

#endif
