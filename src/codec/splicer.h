/* SPDX-License-Identifier: MIT
 * The fast path from a document to the stored form.  In one pass it checks a document and copies
 * its members unchanged.  It does so only if decoding and encoding would give the same bytes; it
 * declines unusual documents.
 *
 * For bulk loads.  It remembers the names of earlier rows, so that it compares a name instead of
 * checking it. */
#ifndef CODEC_SPLICER_H
#define CODEC_SPLICER_H

#include "base/arena.h"
#include "base/span.h"

#include <stdbool.h>

struct splicer;

struct spliced {
	struct span pk, rk;   /* valid; p is NULL if the document has none */
	struct span document; /* as entity_json_encode() writes it with ENTITY_JSON_NEWLINE */
};

/* Returns NULL when memory is out. */
struct splicer *splicer_new(void);
void splicer_free(struct splicer *s);          /* accepts NULL */
size_t splicer_holds(const struct splicer *s); /* bytes */

/* Returns false if the caller must use entity_json_decode().  Returns true if that would succeed,
 * and entity_check() with any two keys too.  *ret is then the result, in memory of `to`. */
bool splicer_take(struct splicer *s, struct span text, struct arena *to, struct spliced *ret);

#endif
