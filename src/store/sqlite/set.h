/* SPDX-License-Identifier: MIT
 * A change set on its way through the group commit.  Private to commit.c, which queues sets and tells
 * their threads, and set.c, which is the leader's part: transactions. */
#ifndef STORE_SQLITE_SET_H
#define STORE_SQLITE_SET_H

#include "base/wake.h"
#include "store/sqlite/store.h"

enum set_state {
	SET_QUEUED,
	SET_TAKEN,    /* by a leader, or by who tells its thread that it has ended */
	SET_UNSYNCED, /* committed, and in st->unsynced */
	SET_ENDED,    /* by its own thread, as a leader or by its sync */
};

/* What the thread of a set is woken for. */
enum {
	WAKE_LOOK = 1, /* it may lead, or sync */
	WAKE_ENDED,    /* nobody else knows the set any more */
};

struct sql_set {
	struct change *changes;
	size_t n; /* 0: it only asks for room */
	uint64_t room;
	bool probes;                           /* with n 0: whether the disk takes a commit */
	struct sql_slice *reclaims;            /* with n 0: reclaims so much */
	const struct sql_compaction *compacts; /* with n 0; NULL */
	bool shrinks;                          /* with n 0: a step that shrinks the store */
	int64_t feed_now;                      /* with n 0: keeps the feed on from this time; 0 */
	struct err_detail *detail;
	enum err result;
	bool durable;
	enum err synced;      /* of a durable set that was committed */
	uint64_t commit;      /* its number */
	enum set_state state; /* guarded by st->lock */
	struct wake wake;
	struct sql_set *next; /* in the queue, or in st->unsynced */
};

/* Returns true if the set has a transaction of its own. */
bool sql_set_stands_alone(const struct sql_set *set);
/* Applies the list of sets, in one transaction if it can, and sets the result of each.  Returns the
 * number of commits made.  Only the leader may call it, without the lock. */
uint64_t sql_sets_run(struct sql_store *st, struct sql_set *sets);
/* Returns true if somebody put another file in the place of the store: what is written now would be
 * lost. */
bool sql_is_replaced(const struct sql_store *st);
/* Returns ERR_IO and says so. */
enum err sql_tell_replaced(struct err_detail *detail);

#endif
