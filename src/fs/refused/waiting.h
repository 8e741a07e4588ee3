/* SPDX-License-Identifier: MIT
 * Refused bytes that the store cannot take either, in memory until it can: a store that was moved or
 * removed, a disk that went read-only or is full.  Bounded: the oldest go first.  Thread-safe. */
#ifndef FS_REFUSED_WAITING_H
#define FS_REFUSED_WAITING_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define WAITING_MAX_BYTES ((size_t)8 << 20)
#define WAITING_MAX 100

struct waiting;
struct waiting *waiting_new(void);
void waiting_free(struct waiting *w); /* the log tells what is lost; NULL is fine */

/* Copies them.  The id is greater than that of any item; 0: too many bytes, or no memory. */
uint64_t waiting_put(struct waiting *w, struct span name, struct span bytes);
/* At its end.  False: it is not there, or would be too large. */
bool waiting_append(struct waiting *w, uint64_t id, struct span bytes);
void waiting_drop(struct waiting *w, uint64_t id);
bool waiting_is_id(uint64_t id);
/* Whether bytes wait under this name; of an empty one: any. */
bool waiting_has(struct waiting *w, struct span name);
/* Once a second: whether the store shall be tried again. */
bool waiting_is_due(struct waiting *w);
/* The oldest, copied.  0: nothing waits, or no memory. */
uint64_t waiting_first(struct waiting *w, struct buf *name, struct buf *bytes);
/* One JSON object a line: name, bytes, and content or, where that is not UTF-8, base64. */
void waiting_dump(struct waiting *w, struct buf *out);

#endif
