/* SPDX-License-Identifier: MIT
 * A thread can ask to be told before it blocks, so that it hands over first what others need of it.
 * The threads of the request loop do (fs/session/loop.h). */
#ifndef BASE_MAY_BLOCK_H
#define BASE_MAY_BLOCK_H

#include <stddef.h>

enum block {
	BLOCK_SURE,    /* it will wait */
	BLOCK_IF_BUSY, /* it takes a while; or it waits only if others have requests */
};

/* The calling thread's function; NULL: it did not ask.  It must not block, and callers may hold any
 * lock. */
extern _Thread_local void (*may_block_hook)(enum block how);

/* To be called before the thread waits for another thread, another process or a disk's sync.  The
 * functions of base/lock.h call it where they have to wait. */
static inline void may_block(enum block how)
{
	if (may_block_hook != NULL)
		may_block_hook(how);
}

#endif
