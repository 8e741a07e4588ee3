/* SPDX-License-Identifier: MIT
 * The rows of a table, a partition or a query as text, in constant memory.  The streams of the
 * mount and `rowfs export` use it.  All rows are of one view, that of the opening.
 *
 * NDJSON, JSON: each row is an object with PartitionKey, RowKey, Timestamp and its properties; with
 * a selection the keys and the selected properties.  CSV: docs/formats.md; without a selection the
 * rows are read twice, because the header names all properties.  COUNT: the number of rows.
 * EXPLAIN: an object with plan, filter, top, select, looked_at (rows on which the filter was
 * evaluated) and matched. */
#ifndef SERVICE_QUERY_ROW_STREAM_H
#define SERVICE_QUERY_ROW_STREAM_H

#include "base/buf.h"
#include "service/core/service.h"
#include "service/query/queries.h"
#include "service/query/row_query.h"

struct row_stream;

/* Opens a stream.  partition: a PartitionKey in UTF-8; NULL: the whole table.  Takes ownership of
 * *query, also after an error; its form must not be ROW_FORM_NONE.  what: as in views_open().  A
 * missing table or partition has no rows.  ERR_THROTTLED: STREAMS_MAX (service/view/views.h) are
 * open. */
enum err row_stream_open(struct service *s, uint64_t table_id, const struct span *partition,
	struct row_query *query, struct span what, struct row_stream **ret,
	struct err_detail *detail);
void row_stream_close(struct row_stream *s); /* accepts NULL */
/* Shows the state of now instead.  Call it before the first read.  Errors as of row_stream_open(). */
enum err row_stream_renew(struct row_stream *s, struct span what, struct err_detail *detail);

/* Called about every 50 ms.  Returns true if the reader wants no more. */
typedef bool (*row_stream_asked_fn)(void *arg);

/* Appends up to n bytes at this offset; none: the end.  Reading forward is cheap.  Reading back
 * beyond the last 512 KiB starts at 0 again, internally.  Returns fewer than n bytes if more would
 * take long.
 *
 * ERR_CANCELLED: interrupted before the first byte; a later call continues.  ERR_GONE: the view was
 * ended by force.  ERR_TOO_MANY_PROPERTIES: too many columns for a CSV file.  ERR_CORRUPT and
 * errors of the store.  Only one thread may call it at a time. */
enum err row_stream_read(struct row_stream *s, uint64_t offset, size_t n,
	row_stream_asked_fn interrupted, void *arg, struct buf *out, struct err_detail *detail);
/* Sets *ret to the exact number of bytes.  Counts them, if that is not known, without reading documents
 * where sizes of rows do.  Reading goes on where it was.  Errors as of row_stream_read(); after
 * ERR_CANCELLED a later call continues. */
enum err row_stream_size(struct row_stream *s, row_stream_asked_fn interrupted, void *arg,
	uint64_t *ret, struct err_detail *detail);
/* Appends the properties that the header of a CSV file names, each followed by a comma.  Returns false if the
 * rows have not told them yet, or if they do not tell them. */
bool row_stream_columns(const struct row_stream *s, struct buf *out);
/* Spares a CSV file the pass over its rows before the header.  names: of row_stream_columns(), for a stream of
 * the same rows.  Call it before the first read. */
enum err row_stream_know_columns(struct row_stream *s, struct span names);
/* Limits the stream to the rows that the requester sees.  Call it before the first read.  requester must
 * outlive the stream. */
void row_stream_for(struct row_stream *s, const struct query_requester *requester);
/* Returns the number of rows written so far. */
uint64_t row_stream_rows(const struct row_stream *s);

#endif
