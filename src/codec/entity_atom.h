/* SPDX-License-Identifier: MIT
 * Entities and tables as Atom entries: what entity_json.h and entity_odata.h are for JSON
 * (protocol sections 2.1 to 2.6). */
#ifndef CODEC_ENTITY_ATOM_H
#define CODEC_ENTITY_ATOM_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "codec/entity_odata.h"
#include "model/entity.h"

/* Decodes and checks everything that does not depend on the path, as entity_json_decode() does,
 * with the same errors.  ret is reset first; it borrows nothing from text.  Timestamp is
 * dropped; m:null: no property. */
enum err entity_atom_decode(struct span text, struct entity *ret, struct err_detail *detail);

/* The TableName of an entry; lives in the arena.  ERR_KEY_MISSING without one. */
enum err table_atom_decode(
	struct span text, struct arena *arena, struct span *ret_name, struct err_detail *detail);

/* One <entry>; with style->single a whole document.  The errors of entity_odata_render(). */
enum err entity_atom_render(
	const struct odata_style *style, const struct odata_row *row, struct buf *out);
/* The same for a table of that name. */
void table_atom_render(const struct odata_style *style, struct span name, struct buf *out);

/* What stands before the entries of a feed of `what`, "Tables" or a table; and behind them. */
void atom_feed_begin(const struct odata_style *style, struct span what, struct buf *out);
void atom_feed_end(struct buf *out);

#endif
