/* SPDX-License-Identifier: MIT
 * Refused bytes that could not be saved in the store: it was moved or removed, or its disk is read-only
 * or full.  They stay in memory until the store takes them.  Bounded: the oldest go first.  Thread-safe. */
#ifndef FS_REFUSED_UNSAVED_H
#define FS_REFUSED_UNSAVED_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define UNSAVED_MAX_BYTES ((size_t)8 << 20)
#define UNSAVED_MAX 100

struct unsaved;
struct unsaved *unsaved_new(void);
void unsaved_free(struct unsaved *w); /* the log tells what is lost; NULL is fine */

/* Copies them.  The id is greater than that of any item; 0: too many bytes, or no memory. */
uint64_t unsaved_put(struct unsaved *w, struct span name, struct span bytes);
/* At its end.  False: it is not there, or would be too large. */
bool unsaved_append(struct unsaved *w, uint64_t id, struct span bytes);
void unsaved_drop(struct unsaved *w, uint64_t id);
bool unsaved_is_id(uint64_t id);
/* Whether bytes wait under this name; of an empty one: any. */
bool unsaved_has(struct unsaved *w, struct span name);
/* Once a second: whether the store shall be tried again. */
bool unsaved_is_due(struct unsaved *w);
/* The oldest, copied.  0: nothing waits, or no memory. */
uint64_t unsaved_first(struct unsaved *w, struct buf *name, struct buf *bytes);
/* One JSON object a line: name, bytes, and content or, where that is not UTF-8, base64. */
void unsaved_dump(struct unsaved *w, struct buf *out);

#endif
