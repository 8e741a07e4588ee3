/* SPDX-License-Identifier: MIT
 * Figures of all queues of a store. */
#ifndef SERVICE_QUEUE_QUEUE_STATS_H
#define SERVICE_QUEUE_QUEUE_STATS_H

#include "service/core/service.h"

struct queue_stats {
	uint64_t queues;
	/* Counted one by one: those that have not expired.  Else as in struct collection: never too low. */
	uint64_t messages;
	uint64_t visible; /* counted one by one; else 0 */
	/* Seconds.  -1: there is none. */
	int64_t oldest; /* counted one by one: since the insertion of the oldest message; else -1 */
	int64_t waiting; /* since the first message that nobody took became visible */
};

/* Sums up over the queues of all accounts, in a view or (NULL) as they are now.  each: reads the keys of
 * all messages; else the cost depends on the number of queues only. */
enum err queue_stats(
	struct service *s, struct store_view *view, bool each, struct queue_stats *ret);

#endif
