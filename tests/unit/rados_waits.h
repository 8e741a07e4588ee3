/* SPDX-License-Identifier: MIT
 * Watches whether the engine calls may_block() before each request that waits for the cluster. */
#ifndef UNIT_RADOS_WAITS_H
#define UNIT_RADOS_WAITS_H

#include <stdbool.h>

/* Watches the calling thread from now on.  False: librados is missing. */
bool rados_waits_watch(void);
/* The number of requests that waited without a may_block() since the request before. */
unsigned rados_waits_unsaid(void);
/* The number of all watched requests. */
unsigned rados_waits_seen(void);

#endif
