/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <malloc.h>

/* Freed memory below an arena's last used block stays in the arena.  glibc's default is eight
 * arenas for each CPU. */
#define ARENAS 4
/* Blocks of this size get pages of their own, which free(3) returns at once.  Without this setting
 * glibc raises the bound to 32 MiB and keeps request bodies in its arenas. */
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
