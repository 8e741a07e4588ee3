/* SPDX-License-Identifier: MIT
 * A query of a table, row by row, a page at a time: constant memory, however many rows there are.  The
 * service may answer short and empty pages; the continuation token alone ends the scan. */
#ifndef CLOUD_ROW_SCAN_H
#define CLOUD_ROW_SCAN_H

#include "base/arena.h"
#include "cloud/client.h"
#include "cloud/rows.h"

struct row_scan {
	struct client *client;
	struct buf path, options, token; /* token: the encoded parameters of the next page */
	struct buf body;                 /* of this page; rows borrow from it */
	struct rows_page page;
	bool tables, open, last;
	bool stops; /* set by the caller: row_scan_next() answers ERR_NOT_FOUND behind each answer of the
		       service, and goes on with the next one until `last` is set */
};

struct row_scan_query {
	struct span table;  /* n 0: list the tables */
	struct span filter; /* $filter, not encoded; n 0: all */
	struct span select; /* $select; n 0: all */
	unsigned top;       /* rows a page at most; 0: the service's 1,000 */
};

/* Sends nothing yet.  Keeps no reference to *q.  Call row_scan_end() also after an error. */
enum err row_scan_begin(struct client *c, const struct row_scan_query *q, struct row_scan *ret);
/* Reads the next row; it is valid until the next call.  ERR_NOT_FOUND behind the last one;
 * ERR_TABLE_NOT_FOUND, errors of client_send() and cloud_row_read(). */
enum err row_scan_next(struct row_scan *s, struct cloud_row *ret, struct err_detail *detail);
void row_scan_end(struct row_scan *s);
/* Appends a string literal of a filter. */
void cloud_add_literal(struct span text, struct buf *out);

#endif
