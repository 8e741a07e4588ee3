/* SPDX-License-Identifier: MIT
 * Tells when a burst of load is over, so that memory can be returned once and not under load. */
#ifndef REST_BURST_H
#define REST_BURST_H

#include <stdbool.h>
#include <stddef.h>

/* All zero at first.  One thread's. */
struct burst {
	size_t high;    /* the most bytes since the last burst ended */
	unsigned quiet; /* rounds since the load was last near that */
};

/* Takes the load of this round, in bytes.  Returns true once after a burst, when the load has stayed
 * low for three seconds. */
bool burst_is_over(struct burst *t, size_t bytes);

#endif
