/* SPDX-License-Identifier: MIT */
#include "cloudstore/outage.h"

#include "base/clock.h"
#include "base/interrupted.h"
#include "base/may_block.h"

#include <stdatomic.h>
#include <time.h>

/* The request loop has ten threads (fs/session/loop.c).  Two stay to read interruptions, unless they wait
 * for the lock of a row that one of the others has. */
#define OUTAGE_WAITERS_MAX 8
#define WAIT_MS 200 /* doubles */
#define WAIT_MAX_MS 5000
#define SLICE_MS 20 /* how long an interrupted wait lasts */

bool outage_is(enum err e)
{
	return e == ERR_IO || e == ERR_THROTTLED || e == ERR_OUTCOME_UNKNOWN;
}

static void wait_uninterrupted(unsigned ms)
{
	static const struct timespec slice = { .tv_nsec = SLICE_MS * 1000000L };
	uint64_t until = clock_mono_us() + (uint64_t)ms * 1000;
	while (clock_mono_us() < until && !thread_interrupted())
		(void)nanosleep(&slice, NULL);
}

static bool may_wait(struct outage *p)
{
	if (p->waits)
		return true;
	p->waits = atomic_fetch_add(&p->s->outage_waiters, 1) < OUTAGE_WAITERS_MAX;
	if (!p->waits)
		atomic_fetch_sub(&p->s->outage_waiters, 1);
	return p->waits;
}

static bool wait_and_go_on(struct outage *p, enum err *e)
{
	unsigned ms = WAIT_MS << (p->failed < 8 ? p->failed : 8);
	may_block(BLOCK_SURE);
	wait_uninterrupted(ms < WAIT_MAX_MS ? ms : WAIT_MAX_MS);
	p->failed++;
	p->away = false;
	if (thread_interrupted())
		*e = ERR_CANCELLED;
	return *e != ERR_CANCELLED;
}

bool outage_retry(struct outage *p, enum err *e)
{
	bool wants = *e != ERR_OK && p->away && p->s->hard && interrupted_hook != NULL;
	bool again = wants && may_wait(p) && wait_and_go_on(p, e);
	if (!again && p->waits) {
		p->waits = false;
		atomic_fetch_sub(&p->s->outage_waiters, 1);
	}
	return again;
}
