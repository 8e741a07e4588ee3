/* SPDX-License-Identifier: MIT
 * The rows of a table, of a partition or of a query as text that is pulled, at constant
 * memory: what the streams of the mount and `rowfs export` write.  All of one stream is of
 * one moment, that of its opening.
 *
 * NDJSON, JSON: each row as an object with PartitionKey, RowKey, Timestamp and all its
 * properties; of a selection the keys and what was selected of those that the row has.
 * CSV: docs/formats.md; without a selection the rows are read twice, since the header names
 * all properties.  COUNT: the number of rows.  EXPLAIN: an object with plan, filter, top,
 * select, looked_at (rows on which the filter was evaluated), matched. */
#ifndef SERVICE_QUERY_ROW_STREAM_H
#define SERVICE_QUERY_ROW_STREAM_H

#include "base/buf.h"
#include "service/core/service.h"
#include "service/query/queries.h"
#include "service/query/row_query.h"

struct row_stream;

/* partition: a PartitionKey, UTF-8; NULL: the whole table.  Takes over *query, also on
 * failure; its form is not ROW_FORM_NONE.  what: as in views_open().  A table or a partition
 * that is not there has no rows.  ERR_THROTTLED: STREAMS_MAX (service/view/views.h) are open. */
enum err row_stream_open(struct service *s, uint64_t table_id, const struct span *partition,
	struct row_query *query, struct span what, struct row_stream **ret,
	struct err_detail *detail);
void row_stream_close(struct row_stream *s); /* NULL is fine */

/* Asked about every 50 ms; true: the reader wants no more. */
typedef bool (*row_stream_asked_fn)(void *arg);

/* Appends up to n bytes at this offset to out; none: the end.  Reading on is cheap; going back
 * by more than the last reads starts at 0 again, unseen.  Fewer than n where more would take
 * long.  ERR_CANCELLED: interrupted before there was a byte (a later call goes on);
 * ERR_GONE: the view was ended by force; ERR_TOO_MANY_PROPERTIES: more names than a CSV file
 * may have; ERR_CORRUPT and the store's errors.  One caller at a time. */
enum err row_stream_read(struct row_stream *s, uint64_t offset, size_t n,
	row_stream_asked_fn interrupted, void *arg, struct buf *out, struct err_detail *detail);
/* Before the first read: only what the viewer sees; it must outlive the stream. */
void row_stream_for(struct row_stream *s, const struct query_viewer *viewer);
/* Rows written so far. */
uint64_t row_stream_rows(const struct row_stream *s);

#endif
