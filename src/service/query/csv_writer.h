/* SPDX-License-Identifier: MIT
 * Rows as CSV (docs/formats.md): a header that names every column, then one record a row.
 * The columns must be known before the header: from a list, or from a first look at every
 * row. */
#ifndef SERVICE_QUERY_CSV_WRITER_H
#define SERVICE_QUERY_CSV_WRITER_H

#include "base/buf.h"
#include "base/err.h"
#include "model/entity.h"

struct csv_writer;

/* with_time: a column Timestamp behind the keys.  NULL: no memory. */
struct csv_writer *csv_writer_new(bool with_time);
void csv_writer_free(struct csv_writer *w); /* NULL is fine */

/* A property's two columns, NAME and NAME@type, in the order of the calls, each name once.
 * Copies the name.  ERR_TOO_MANY_PROPERTIES: an import could not read a header with more;
 * ERR_NO_MEMORY. */
enum err csv_writer_add(struct csv_writer *w, struct span name);

void csv_writer_header(struct csv_writer *w, struct buf *out);
/* e has keys and Timestamp; properties without a column are left out.  Columns are added no
 * more after the first row.  ERR_NO_MEMORY. */
enum err csv_writer_row(struct csv_writer *w, const struct entity *e, struct buf *out);

#endif
