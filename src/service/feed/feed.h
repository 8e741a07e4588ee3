/* SPDX-License-Identifier: MIT
 * Changes of a table or a partition as lines of JSON, in the order of their commits:
 *
 * 	{"position":"17-638…","kind":"put","PartitionKey":"a","RowKey":"1","time":"…","etag":"…","row":{…}}
 *
 * "row" is the row as it is while the line is read; null if a later line tells of it again.  A line
 * without RowKey is about all rows of a partition that was renamed or removed.  A position names
 * one line of one store (store/store.h); reading goes on behind it. */
#ifndef SERVICE_FEED_FEED_H
#define SERVICE_FEED_FEED_H

#include "base/buf.h"
#include "model/limits.h"
#include "service/core/row_line.h"
#include "service/core/service.h"

/* Each position fits, with a NUL. */
#define FEED_POSITION_MAX 48

/* One reader.  One thread at a time. */
struct feed {
	struct service *service;
	uint64_t table_id;
	struct span pk; /* order form, in key; p NULL: the whole table */
	char key[LIMIT_KEY_BYTES];
	bool with_rows;
	bool started; /* else it begins with what is kept */
	struct store_feed_position at;
	uint64_t passed; /* lines of other tables and partitions since the last line it gave */
	struct row_line row;
};

/* Where a reader begins. */
enum feed_start {
	FEED_START_KEPT,     /* with the earliest change that is kept */
	FEED_START_NOW,      /* with the next change */
	FEED_START_POSITION, /* behind a position */
};

/* Opens a reader, and has the store keep the feed from now on (STORE_FEED_KEPT_TICKS).  pk: a
 * PartitionKey in order form (model/key.h), which is copied; p NULL: the whole table.  position: for FEED_START_POSITION.  Call feed_close()
 * also after an error.  ERR_INVALID_INPUT: it is no position; ERR_FEED_GONE: as of store_feed_read();
 * ERR_NOT_SUPPORTED: a store in a cluster; ERR_READ_ONLY. */
enum err feed_open(struct service *s, uint64_t table_id, struct span pk, enum feed_start start,
	struct span position, bool with_rows, struct feed *ret, struct err_detail *detail);
void feed_close(struct feed *f);
/* Appends some lines; none: these are all for now, or *ret_more: they are not.  Errors as of
 * feed_open(); ERR_TABLE_NOT_FOUND: the table was removed. */
enum err feed_read(struct feed *f, struct buf *out, bool *ret_more, struct err_detail *detail);
/* Writes the position behind which feed_read() goes on, and a NUL.  Returns the length. */
int feed_position(const struct feed *f, char out[FEED_POSITION_MAX]);
/* Appends a line without a change, with this position: for readers who keep it. */
void feed_write_position(const char *position, struct buf *out);

#endif
