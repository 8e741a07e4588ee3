/* SPDX-License-Identifier: MIT
 * Settings of the allocator: how much freed memory the C library keeps. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

/* Limits the memory that the allocator keeps.  Call it once, before other threads start. */
void memory_set_up(void);
/* Returns freed memory to the kernel.  It takes milliseconds, and other threads may wait for memory
 * meanwhile.  Call it after a burst of load, not after each request. */
void memory_give_back(void);

#endif
