/* SPDX-License-Identifier: MIT
 * Entities and tables as Atom entries, as entity_json.h and entity_odata.h do for JSON (protocol
 * sections 2.1 to 2.6). */
#ifndef CODEC_ENTITY_ATOM_H
#define CODEC_ENTITY_ATOM_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "codec/entity_odata.h"
#include "model/entity.h"

/* Decodes an entry with the checks and errors of entity_json_decode().  ret is reset first and
 * borrows nothing from text.  Timestamp is dropped, and so are properties with m:null. */
enum err entity_atom_decode(struct span text, struct entity *ret, struct err_detail *detail);

/* Sets *ret_name to the TableName of an entry; the arena owns it.  ERR_KEY_MISSING without one. */
enum err table_atom_decode(
	struct span text, struct arena *arena, struct span *ret_name, struct err_detail *detail);

/* Appends one <entry>, or a whole document if style->single.  The errors are those of
 * entity_odata_render(). */
enum err entity_atom_render(
	const struct odata_style *style, const struct odata_row *row, struct buf *out);
/* Appends the entry of a table. */
void table_atom_render(const struct odata_style *style, struct span name, struct buf *out);

/* Append the start and the end of a feed.  what is "Tables" or the name of a table. */
void atom_feed_begin(const struct odata_style *style, struct span what, struct buf *out);
void atom_feed_end(struct buf *out);

#endif
