/* SPDX-License-Identifier: MIT
 * Who is connected, what each is at, and until when: a thread hangs up on those who are
 * overdue.  The HTTP library's own time limit begins anew with each byte, so that a client
 * that sends one a minute could stay for ever. */
#ifndef REST_WATCHDOG_H
#define REST_WATCHDOG_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watchdog;

/* How often the thread looks at all connections. */
#define WATCHDOG_ROUND_MS 100

enum phase {
	PHASE_IDLE,  /* no request line yet */
	PHASE_HEAD,  /* the headers are coming */
	PHASE_BODY,  /* the body is coming */
	PHASE_WORK,  /* ours: never overdue */
	PHASE_REPLY, /* the answer is going out */
	PHASES
};

/* Part of what a connection is.  The phase and its end are set without a lock. */
struct watchdog_entry {
	struct watchdog_entry *next, *prev; /* older, newer */
	int fd;
	bool hung_up;      /* the watch's */
	uint64_t since;    /* when it came */
	atomic_bool known; /* a request of it had a good credential */
	_Atomic uint32_t phase;
	_Atomic uint64_t deadline; /* monotonic microseconds */
};

/* Called after each round, from the watch's thread and without its lock. */
typedef void (*watchdog_round_fn)(void *arg, size_t connections);

/* crowd: with so many connections and more, those that are idle or slow to say what they want are
 * given little time, and of those that are not `known` the oldest go at once. */
enum err watchdog_start(
	size_t crowd, watchdog_round_fn after_round, void *arg, struct watchdog **ret);
/* When nobody is connected any more.  NULL is fine. */
void watchdog_stop(struct watchdog *w);

void watchdog_add(struct watchdog *w, struct watchdog_entry *c, uint32_t phase_ms);
/* Before the descriptor is closed: nobody is hung up on afterwards. */
void watchdog_remove(struct watchdog *w, struct watchdog_entry *c);

/* The one with this descriptor, or NULL.  It stays while the caller knows that nobody closes it. */
struct watchdog_entry *watchdog_find(struct watchdog *w, int fd);

/* The connection is at this now and must have left it in that time; UINT32_MAX: no limit. */
void watchdog_phase(struct watchdog_entry *c, enum phase phase, uint32_t ms);

/* Asks those who are idle to go: what they have sent already is still read. */
void watchdog_dismiss_idle(struct watchdog *w);
/* Hangs up on all but those in PHASE_WORK. */
void watchdog_hang_up(struct watchdog *w);
/* How many are in each phase. */
void watchdog_count(struct watchdog *w, size_t ret[PHASES]);

#endif
