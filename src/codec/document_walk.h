/* SPDX-License-Identifier: MIT
 * Walks a stored canonical document (ITEM_CANONICAL) property by property.  It skips the checks
 * that were made before the document was stored.  For scans that need few properties. */
#ifndef CODEC_DOCUMENT_WALK_H
#define CODEC_DOCUMENT_WALK_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"
#include "model/limits.h"
#include "model/value.h"

#include <stdbool.h>

struct document_walk {
	const char *p, *end; /* p: start of the next property */
};

struct document_property {
	struct span name;
	struct span type; /* such as "Edm.Int64"; n is 0 if the property has no annotation */
	struct span text; /* of the value, with quotes */
};

/* Returns false if the document is not canonical. */
bool document_walk_begin(struct span document, struct document_walk *ret);

/* Takes the next property.  ERR_NOT_FOUND behind the last one; ERR_CORRUPT if the document is not
 * canonical. */
enum err document_walk_next(struct document_walk *w, struct document_property *ret);

/* Takes the value of the next property if `before`, the text in front of the value, matches.
 * *ret_text includes quotes.  Else returns false and does not move. */
bool document_walk_behind(struct document_walk *w, struct span before, struct span *ret_text);

/* All properties, for lookups. */
struct document_properties {
	struct document_property all[LIMIT_PROPERTIES];
	size_t n, next; /* behind the last one found */
};

/* Collects the rest of the walk.  ERR_CORRUPT. */
enum err document_gather(struct document_walk *w, struct document_properties *ret);
/* Returns the property or NULL.  Fast if the caller asks in the order of the document. */
const struct document_property *document_find(struct document_properties *d, struct span name);
/* Collects the rest of the walk and calls fn for each of n names, in their order.  Ends with the
 * first error of fn.  ERR_CORRUPT. */
enum err document_select(struct document_walk *w, const struct span *names, size_t n,
	enum err (*fn)(void *arg, struct document_properties *all, struct span name), void *arg);

/* Decodes a value, which borrows from the document or from the arena.  ERR_NOT_SUPPORTED for
 * Binary: use entity_json_decode().  ERR_CORRUPT, ERR_NO_MEMORY. */
enum err document_value(const struct document_property *p, struct arena *arena, struct value *ret);

#endif
