/* SPDX-License-Identifier: MIT
 * Requests that wait for a change or a time, without a thread of their own each.  A waiter
 * waits for its key to be woken, or for its time, and then its ready() is called once, by the
 * thread that woke it or by the timer's. */
#ifndef FS_CORE_WAITERS_H
#define FS_CORE_WAITERS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* The key of those who wait for whatever change. */
#define WAITERS_ANY_CHANGE 1

/* Owned by the caller, who keeps it until ready() was called or waiters_cancel() returned true. */
struct waiter {
	struct waiter *next, *previous;
	uint64_t key, until_us; /* of CLOCK_MONOTONIC */
	void (*ready)(struct waiter *w);
	bool queued, cancelled; /* guarded by the lock of the table */
};

struct waiters;
/* NULL: no memory, or no thread. */
struct waiters *waiters_new(void);
/* No waiter is left.  Accepts NULL. */
void waiters_free(struct waiters *t);

/* A number that grows with each wake.  The caller asks for it before it looks whether it must
 * wait. */
uint64_t waiters_seen(struct waiters *t);
/* Begins to wait.  Returns false, and the caller looks again, if anything was woken since
 * `seen`, if the waiter was cancelled, or after waiters_end(). */
bool waiters_add(struct waiters *t, struct waiter *w, uint64_t seen);
void waiters_wake(struct waiters *t, uint64_t key);
/* Ends a wait; later waits of it do not begin.  Returns true if ready() will not be called. */
bool waiters_cancel(struct waiters *t, struct waiter *w);
/* Wakes all, and lets none wait any more. */
void waiters_end(struct waiters *t);

#endif
