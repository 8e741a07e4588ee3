/* SPDX-License-Identifier: MIT
 * Rows as CSV (docs/formats.md): a header with all columns, then one record a row.  The columns
 * must be known before the header, from a list or from a first pass over the rows. */
#ifndef SERVICE_QUERY_CSV_WRITER_H
#define SERVICE_QUERY_CSV_WRITER_H

#include "base/buf.h"
#include "base/err.h"
#include "model/entity.h"

struct csv_writer;

/* with_time: add a column Timestamp behind the keys.  NULL when memory is out. */
struct csv_writer *csv_writer_new(bool with_time);
void csv_writer_free(struct csv_writer *w); /* accepts NULL */

/* Adds the two columns of a property, NAME and NAME@type, unless they exist.  Copies the name.
 * ERR_TOO_MANY_PROPERTIES: an import could not read such a header; ERR_NO_MEMORY. */
enum err csv_writer_add(struct csv_writer *w, struct span name);

/* Appends the names of the properties that have columns, in order, each followed by a comma. */
void csv_writer_names(const struct csv_writer *w, struct buf *out);

/* Adds the bytes of a row's record to a count, which can be before all columns are known.
 * ERR_NO_MEMORY. */
enum err csv_writer_measure(struct csv_writer *w, const struct entity *e);
/* Sets the count to 0. */
void csv_writer_measure_none(struct csv_writer *w);
/* Returns the bytes of the header and of the records that were counted, with the columns that there are
 * now. */
uint64_t csv_writer_measured(const struct csv_writer *w);

/* Appends the header. */
void csv_writer_header(struct csv_writer *w, struct buf *out);
/* Appends a record.  e must have keys and Timestamp; properties without a column are left out.  No
 * columns may be added after the first row.  ERR_NO_MEMORY. */
enum err csv_writer_row(struct csv_writer *w, const struct entity *e, struct buf *out);

#endif
