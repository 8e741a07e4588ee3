/* SPDX-License-Identifier: MIT
 * A thread that waits for long asks here if somebody interrupted the program for which it works.  The mount
 * sets the function while a thread serves a request. */
#ifndef BASE_INTERRUPTED_H
#define BASE_INTERRUPTED_H

#include <stdbool.h>
#include <stddef.h>

/* The calling thread's function; NULL: nobody can interrupt what it does. */
extern _Thread_local bool (*interrupted_hook)(void);

static inline bool thread_interrupted(void)
{
	return interrupted_hook != NULL && interrupted_hook();
}

#endif
