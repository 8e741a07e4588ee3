/* SPDX-License-Identifier: MIT
 * A stored canonical document (ITEM_CANONICAL), property by property, without the checks
 * that were made before it was stored: for scans that want few of its properties. */
#ifndef CODEC_DOCUMENT_WALK_H
#define CODEC_DOCUMENT_WALK_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"
#include "model/limits.h"
#include "model/value.h"

#include <stdbool.h>

struct document_walk {
	const char *p, *end; /* p: where the next property begins, to go back there */
};

struct document_property {
	struct span name;
	struct span type; /* "Edm.Int64"; n is 0 where the value tells it */
	struct span text; /* of the value, quotes included */
};

/* False: it is no canonical document. */
bool document_walk_begin(struct span document, struct document_walk *ret);

/* ERR_NOT_FOUND behind the last property; ERR_CORRUPT: it is no canonical document. */
enum err document_walk_next(struct document_walk *w, struct document_property *ret);

/* The value of the next property, quotes included, where the document goes on with just `before`
 * (all that stands in front of a value); else false, and it was not touched. */
bool document_walk_behind(struct document_walk *w, struct span before, struct span *ret_text);

/* All properties, to look some up. */
struct document_properties {
	struct document_property all[LIMIT_PROPERTIES];
	size_t n, next; /* next: behind the last one found */
};

/* The rest of the walk.  ERR_CORRUPT. */
enum err document_gather(struct document_walk *w, struct document_properties *ret);
/* Quick where names are looked up in the document's order; NULL: no such property. */
const struct document_property *document_find(struct document_properties *d, struct span name);

/* Borrows from the document, or from the arena.  ERR_NOT_SUPPORTED for a Binary, whose bytes
 * entity_json_decode() gives; ERR_CORRUPT, ERR_NO_MEMORY. */
enum err document_value(const struct document_property *p, struct arena *arena, struct value *ret);

#endif
