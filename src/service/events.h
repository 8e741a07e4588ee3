/* SPDX-License-Identifier: MIT
 * Who wants to know about committed changes.  A subscriber is called by the thread that
 * made the change, after the commit, with no lock held, before the change is
 * acknowledged: what it does (dropping kernel caches) is done when the door answers. */
#ifndef SERVICE_EVENTS_H
#define SERVICE_EVENTS_H

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
/* Returns when no call is running any more. */
void service_unsubscribe(struct service *s);

#endif
