/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <malloc.h>

/* An arena keeps what lies beneath its last block in use, and glibc has eight for each CPU. */
#define ARENAS 4
/* A block of this size and more has pages of its own, which go when it is freed.  Unless it is
 * set, glibc raises this bound to 32 MiB, and bodies and answers would lie in the arenas. */
#define OWN_PAGES_BYTES (1 << 20)

void memory_set_up(void)
{
	(void)mallopt(M_ARENA_MAX, ARENAS);
	(void)mallopt(M_MMAP_THRESHOLD, OWN_PAGES_BYTES);
}

void memory_give_back(void)
{
	(void)malloc_trim(0);
}
