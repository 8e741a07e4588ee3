/* SPDX-License-Identifier: MIT */
#include "cloudstore/patience.h"

#include "base/clock.h"
#include "base/interrupted.h"
#include "base/may_block.h"

#include <stdatomic.h>
#include <time.h>

/* The request loop has ten threads (fs/session/loop.c): two stay to read interruptions. */
#define PATIENT_MAX 8
#define WAIT_MS 200 /* doubles */
#define WAIT_MAX_MS 5000
#define SLICE_MS 20 /* how long an interrupted wait lasts */

bool patience_is_away(enum err e)
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

bool patience_again(struct patience *p, enum err *e)
{
	struct cloudstore *s = p->s;
	if (*e == ERR_OK || !p->away || !s->hard || interrupted_hook == NULL)
		return false;
	bool may_wait = atomic_fetch_add(&s->patient, 1) < PATIENT_MAX;
	unsigned ms = WAIT_MS << (p->failed < 8 ? p->failed : 8);
	may_block(BLOCK_SURE);
	if (may_wait)
		wait_uninterrupted(ms < WAIT_MAX_MS ? ms : WAIT_MAX_MS);
	atomic_fetch_sub(&s->patient, 1);
	p->failed++;
	p->away = false;
	if (may_wait && thread_interrupted())
		*e = ERR_CANCELLED;
	return may_wait && *e != ERR_CANCELLED;
}
