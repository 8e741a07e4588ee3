/* SPDX-License-Identifier: MIT
 * Returns freed memory, which the C library keeps, to the system. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

/* Bounds what the allocator keeps.  Call it once, before there are threads. */
void memory_set_up(void);
/* Returns freed memory to the system.  Takes some milliseconds, in which other threads may wait
 * for memory: call it after a burst, not after each request. */
void memory_give_back(void);

#endif
