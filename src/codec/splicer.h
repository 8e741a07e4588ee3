/* SPDX-License-Identifier: MIT
 * The short way from a document to what is stored: one pass that checks it and copies its
 * members as they stand, where that is what decoding and encoding would give.  For bulk
 * loads, whose rows are mostly written so; for anything unusual the splicer has no answer.
 * It knows the names of the rows before, so a name is a compare and not a check. */
#ifndef CODEC_SPLICER_H
#define CODEC_SPLICER_H

#include "base/arena.h"
#include "base/span.h"

#include <stdbool.h>

struct splicer;

struct spliced {
	struct span pk, rk;   /* p NULL: not in the document; else checked */
	struct span document; /* what entity_json_encode() with ENTITY_JSON_NEWLINE writes */
};

/* NULL when memory is out. */
struct splicer *splicer_new(void);
void splicer_free(struct splicer *s);          /* NULL is fine */
size_t splicer_holds(const struct splicer *s); /* memory */

/* False: nobody knows, ask entity_json_decode().  True: it would succeed, also under
 * entity_check() with any two keys, and *ret, whose memory is `to`'s, is what comes of it. */
bool splicer_take(struct splicer *s, struct span text, struct arena *to, struct spliced *ret);

#endif
