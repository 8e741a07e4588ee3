/* SPDX-License-Identifier: MIT
 * Closes connections that exceed a deadline.  Each connection has a phase and a deadline for it,
 * and one thread checks all of them.  MHD's own timeout restarts with each byte, so a client that
 * sends one byte a minute could stay for ever. */
#ifndef REST_HTTP_WATCHDOG_H
#define REST_HTTP_WATCHDOG_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watchdog;

/* The thread checks all connections at this interval. */
#define WATCHDOG_ROUND_MS 100

enum phase {
	PHASE_IDLE,  /* waits for a request line */
	PHASE_HEAD,  /* receives headers */
	PHASE_BODY,  /* receives a body */
	PHASE_WORK,  /* rowfs works on it: no deadline */
	PHASE_REPLY, /* sends the response */
	PHASES
};

/* Embedded in a connection.  phase and deadline are set without a lock. */
struct watchdog_entry {
	struct watchdog_entry *next, *prev; /* older, newer */
	int fd;
	bool hung_up;      /* used by the watchdog only */
	bool stays;        /* watchdog_dismiss_idle() leaves it open; set before watchdog_add() */
	uint64_t since;    /* when it was accepted, in monotonic microseconds */
	atomic_bool known; /* it had a request with a valid credential */
	_Atomic uint32_t phase;
	_Atomic uint64_t deadline; /* monotonic microseconds */
};

/* Called after each round by the watchdog's thread, without its lock. */
typedef void (*watchdog_round_fn)(void *arg, size_t connections);

/* Starts the thread.  From `crowd` connections on, idle and slow ones get a short deadline, and the
 * oldest ones that are not `known` are closed at once.  ERR_NO_MEMORY. */
enum err watchdog_start(
	size_t crowd, watchdog_round_fn after_round, void *arg, struct watchdog **ret);
/* Stops the thread.  No connection may be left.  NULL is allowed. */
void watchdog_stop(struct watchdog *w);

/* Adds a connection in PHASE_IDLE with a deadline in phase_ms milliseconds.  The caller sets fd. */
void watchdog_add(struct watchdog *w, struct watchdog_entry *c, uint32_t phase_ms);
/* Call it before the descriptor is closed.  Afterwards the watchdog does not touch it. */
void watchdog_remove(struct watchdog *w, struct watchdog_entry *c);

/* Returns the entry with this descriptor, or NULL.  It is valid while the caller knows that no
 * thread closes the connection. */
struct watchdog_entry *watchdog_find(struct watchdog *w, int fd);

/* Begins a phase, which must end within ms milliseconds; UINT32_MAX: no limit. */
void watchdog_phase(struct watchdog_entry *c, enum phase phase, uint32_t ms);

/* Shuts down the receiving side of idle connections, except those that stay.  Data that has arrived
 * is still read. */
void watchdog_dismiss_idle(struct watchdog *w);
/* Shuts down all connections but those in PHASE_WORK. */
void watchdog_hang_up(struct watchdog *w);
/* Counts the connections in each phase. */
void watchdog_count(struct watchdog *w, size_t ret[PHASES]);

#endif
