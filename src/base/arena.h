/* SPDX-License-Identifier: MIT
 * Many small allocations, one free.  Not for several threads at once. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/span.h"

#include <stddef.h>

struct arena_block;
struct arena {
	struct arena_block *head; /* a zeroed arena is an empty one */
};

/* 16-byte aligned, not zeroed; NULL when memory is out. */
void *arena_alloc(struct arena *a, size_t n);
/* A copy with a NUL behind it; p is NULL when memory is out. */
struct span arena_copy(struct arena *a, struct span s);
/* Forgets everything but keeps the newest block for reuse. */
void arena_reset(struct arena *a);
void arena_fini(struct arena *a);
/* The memory it has. */
size_t arena_holds(const struct arena *a);

#endif
