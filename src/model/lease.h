/* SPDX-License-Identifier: MIT
 * A lease of a blob or a container: for a time, only requests with its id may change what it guards.
 *
 * Its state follows from the lease and the time, so nothing has to happen when it ends. */
#ifndef MODEL_LEASE_H
#define MODEL_LEASE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define LEASE_SECONDS_MIN 15
#define LEASE_SECONDS_MAX 60
#define LEASE_INFINITE (-1)
#define LEASE_BREAK_SECONDS_MAX 60
#define LEASE_BREAK_DEFAULT (-1) /* what is left of a lease that ends, else 0 */

/* Zeroed: there is none. */
struct lease {
	struct span id; /* a GUID in lower case */
	int seconds;    /* how long it was taken for, or LEASE_INFINITE */
	int64_t until;  /* ticks: it ends; INT64_MAX if it does not */
	bool broken;    /* by a request: when it ends, it is broken, not expired */
};

enum lease_state {
	LEASE_AVAILABLE,
	LEASE_LEASED,
	LEASE_EXPIRED,
	LEASE_BREAKING,
	LEASE_BROKEN,
};
enum lease_state lease_state(const struct lease *l, int64_t now);
/* Returns the name of a state in headers. */
const char *lease_state_name(enum lease_state s);
/* Returns whether what it guards is locked in a state. */
static inline bool lease_is_locked(enum lease_state s)
{
	return s == LEASE_LEASED || s == LEASE_BREAKING;
}

enum lease_action {
	LEASE_ACQUIRE,
	LEASE_RENEW,
	LEASE_CHANGE,
	LEASE_RELEASE,
	LEASE_BREAK
};
struct lease_request {
	enum lease_action action;
	struct span id;   /* acquire, change: the new one; renew, release: that of the lease */
	struct span from; /* change: that of the lease */
	int seconds;      /* acquire: the duration; break: the period, or LEASE_BREAK_DEFAULT */
};
/* Works out what a lease becomes; *ret borrows from both.  ERR_LEASE_PRESENT,
 * ERR_LEASE_OTHER_ID, ERR_LEASE_NONE, ERR_LEASE_BREAKING_ACQUIRE, ERR_LEASE_BREAKING_CHANGE,
 * ERR_LEASE_BROKEN_RENEW. */
enum err lease_apply(
	const struct lease *l, const struct lease_request *r, int64_t now, struct lease *ret);

/* Check a request that gives the id `given` (n 0: none) against the lease of its blob.  A read needs
 * no id, but one that is given must be right.  ERR_LEASE_ID_MISSING, ERR_LEASE_MISMATCH,
 * ERR_LEASE_ABSENT, ERR_LEASE_LOST. */
enum err lease_check_read(const struct lease *l, struct span given, int64_t now);
enum err lease_check_write(const struct lease *l, struct span given, int64_t now);
/* Returns the lease after a change of what it guarded: one that has ended is gone. */
struct lease lease_after_write(const struct lease *l, int64_t now);

/* Appends a lease as text. */
void lease_write(const struct lease *l, struct buf *out);
/* Reads it; *ret borrows the id.  Returns false for anything else. */
bool lease_read(struct span text, struct lease *ret);

#endif
