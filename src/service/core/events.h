/* SPDX-License-Identifier: MIT
 * Who wants to know about committed changes.  A subscriber is called by the thread that
 * made the change, after the commit, before the change is acknowledged: what it does
 * (dropping kernel caches) is done when the door answers.
 * The thread holds EVENTS, DOORS if the change did not come by the mount, and what the door
 * held when it made the change, such as a STAGE.  So a subscriber takes only locks below
 * EVENTS in base/lock_ranks.h.  It never waits for the kernel when the change came by the mount. */
#ifndef SERVICE_CORE_EVENTS_H
#define SERVICE_CORE_EVENTS_H

#include "store/store.h"

#include <stddef.h>

struct service;

/* Which door made the change: a door that has its own way to make its caches right for its
 * own changes skips them. */
enum origin {
	ORIGIN_COMMAND,
	ORIGIN_MOUNT,
	ORIGIN_REST
};

/* changes[].now, .old, .left are valid during the call. */
typedef void (*event_fn)(void *arg, enum origin origin, const struct change *changes, size_t n);

/* One subscriber at a time.  While there is one, CHANGE_WANT_OLD is set on every change. */
void service_subscribe(struct service *s, event_fn fn, void *arg);
/* What more the subscriber does about change sets.  Called like event_fn. */
struct set_watch {
	/* Of every one, right after its commit and before the event: keeps what is needed by those who
	 * have seen it (service_wait_kept()).  Waits for nobody. */
	void (*keep)(void *arg, const struct change *changes, size_t n);
	/* Around one of several rows of one partition, by another door than the mount: in between,
	 * what a door hands out of the partition must not be kept, so that nobody who saw one change
	 * of the set finds another one undone.  begins() comes before the commit, with the places
	 * where rows change; ended() gets its answer, 0 excepted, whether or not the set was
	 * applied. */
	uint64_t (*begins)(void *arg, const struct change *changes, size_t n);
	void (*ended)(void *arg, uint64_t token);
	/* Nobody is let in to write any more: returns when what was let in before has ended. */
	void (*settle)(void *arg);
};
/* Of the subscriber, with its arg; until it unsubscribes. */
void service_watch_sets(struct service *s, const struct set_watch *watch);
/* Returns when no call is running any more. */
void service_unsubscribe(struct service *s);

#endif
