/* SPDX-License-Identifier: MIT */
#include "rest/http/burst.h"

#include "rest/http/watchdog.h"

/* A smaller burst is not worth the milliseconds that returning memory takes. */
#define BURST_BYTES ((size_t)4 << 20)
#define QUIET_ROUNDS (3000 / WATCHDOG_ROUND_MS)

bool burst_is_over(struct burst *t, size_t bytes)
{
	if (bytes > t->high)
		t->high = bytes;
	if (bytes > t->high / 4 || t->high < BURST_BYTES) {
		t->quiet = 0;
		return false;
	}
	if (++t->quiet < QUIET_ROUNDS)
		return false;
	*t = (struct burst){ .high = bytes };
	return true;
}
