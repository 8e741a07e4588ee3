/* SPDX-License-Identifier: MIT
 * Detects the end of a burst of load, so that memory is returned once, and not under load. */
#ifndef REST_HTTP_BURST_H
#define REST_HTTP_BURST_H

#include <stdbool.h>
#include <stddef.h>

/* A zeroed struct is the initial state.  Only one thread may use it. */
struct burst {
	size_t high;    /* the most bytes since the last burst ended */
	unsigned quiet; /* rounds of low load so far */
};

/* Takes the load of this round, in bytes.  Returns true once after a burst, when the load was low
 * for three seconds. */
bool burst_is_over(struct burst *t, size_t bytes);

#endif
