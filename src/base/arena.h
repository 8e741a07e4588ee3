/* SPDX-License-Identifier: MIT
 * An arena: many small allocations that are freed together.  A thread that uses an arena must have
 * it to itself. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/span.h"

#include <stddef.h>

struct arena_block;
struct arena {
	struct arena_block *head; /* NULL in an empty arena, which is a zeroed one */
};

/* Returns n uninitialized bytes, aligned to 16, or NULL when memory is out. */
void *arena_alloc(struct arena *a, size_t n);
/* Copies s and adds a NUL.  Returns a span with p == NULL when memory is out. */
struct span arena_copy(struct arena *a, struct span s);
/* Invalidates all allocations and keeps the newest block for new ones. */
void arena_reset(struct arena *a);
/* Frees everything; the arena is empty again and may be reused. */
void arena_fini(struct arena *a);
/* Returns how many bytes the arena has from malloc. */
size_t arena_holds(const struct arena *a);

#endif
