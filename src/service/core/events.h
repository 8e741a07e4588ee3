/* SPDX-License-Identifier: MIT
 * Events about committed changes.  The thread that made a change calls the subscriber after the
 * commit and before the change is acknowledged, without locks.  So the kernel's caches are
 * invalidated when the client gets its reply.  A thread of the engine calls it in the same way
 * about changes of other processes. */
#ifndef SERVICE_CORE_EVENTS_H
#define SERVICE_CORE_EVENTS_H

#include "store/store.h"

#include <stddef.h>

struct service;

/* The front end that made a change.  A front end that updates its caches by other means ignores its
 * own changes. */
enum origin {
	ORIGIN_COMMAND,
	ORIGIN_MOUNT,
	ORIGIN_REST,
	ORIGIN_EXTERNAL /* another process with the same store; old has no body */
};

/* changes[].now, .old and .left are valid only during the call. */
typedef void (*event_fn)(void *arg, enum origin origin, const struct change *changes, size_t n);

/* Sets the only subscriber.  While there is one, every change has CHANGE_WANT_OLD. */
void service_subscribe(struct service *s, event_fn fn, void *arg);
/* Further callbacks of the subscriber, with its arg.  They are called like event_fn. */
struct set_watch {
	/* For every change set, right after its commit and before the event: retains the
	 * before-images that readers may still ask for (service_wait_retained()).  Must not wait for
	 * other threads. */
	void (*retain)(void *arg, const struct change *changes, size_t n);
	/* Around a set that changes several rows of a partition, by another front end than the
	 * mount.  In between, the mount must not let the kernel cache rows of the partition.  So a
	 * reader who saw one change of the set never misses another.  begins() comes before the
	 * commit, with references to the rows that change.  ended() gets its result unless that is
	 * 0, whether or not the set was applied. */
	uint64_t (*begins)(void *arg, const struct change *changes, size_t n);
	void (*ended)(void *arg, uint64_t token);
	/* The kernel admits no new writes: returns when those that it admitted before have
	 * ended. */
	void (*drain)(void *arg);
};
/* Adds these callbacks until the subscriber unsubscribes. */
void service_watch_sets(struct service *s, const struct set_watch *watch);
/* Removes the subscriber.  Returns when no call is running. */
void service_unsubscribe(struct service *s);

#endif
