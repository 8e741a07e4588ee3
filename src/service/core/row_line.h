/* SPDX-License-Identifier: MIT
 * How long the line of a row is in a stream of all its properties.  The size of a canonical document
 * tells it.  So a stream can be counted without its documents, and a change tells by how much it
 * lengthens the stream. */
#ifndef SERVICE_CORE_ROW_LINE_H
#define SERVICE_CORE_ROW_LINE_H

#include "base/buf.h"
#include "base/err.h"
#include "codec/entity_json.h"
#include "model/entity.h"
#include "store/store.h"

struct row_line { /* zeroed: empty */
	struct buf text;
	struct entity entity;
};
void row_line_fini(struct row_line *l);

/* The json_flags of .rows.ndjson. */
#define ROW_LINE_STREAM (ENTITY_JSON_PK | ENTITY_JSON_RK | ENTITY_JSON_TIMESTAMP)

/* Sets *ret to the bytes of a row as an object, without the line's end; 0 for a row without a document.
 * json_flags: enum entity_json_flags.  document: of a row that is not canonical.  ERR_NOT_FOUND: it is
 * missing; ERR_CORRUPT, ERR_NO_MEMORY. */
enum err row_line_bytes(struct row_line *l, const struct item *row, struct span pk, struct span rk,
	unsigned json_flags, struct span document, uint64_t *ret);

/* Appends a row as an object: its keys by json_flags, then its properties.  row: with its body.
 * ERR_CORRUPT; a failure to append is buf_ok()'s to tell. */
enum err row_line_write(struct row_line *l, const struct item *row, struct span pk, struct span rk,
	unsigned json_flags, struct buf *out);
/* Does the same for a canonical document, which is copied.  keys: its keys and Timestamp. */
enum err row_line_splice(
	const struct entity *keys, struct span document, unsigned json_flags, struct buf *out);

#endif
