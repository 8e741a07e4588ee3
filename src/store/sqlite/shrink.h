/* SPDX-License-Identifier: MIT
 * A served store gives freed pages back by itself, in small steps. */
#ifndef STORE_SQLITE_SHRINK_H
#define STORE_SQLITE_SHRINK_H

#include "store/sqlite/store.h"

/* The next step of shrinking. */
enum sql_shrink {
	SHRINK_DONE,
	SHRINK_CUT, /* the file ends behind its last page: it is cut once the log is copied, and the log
			too */
	SHRINK_MOVE, /* many pages are free: the last ones take their places */
};

/* Returns false for a store of before, whose pages cannot be moved.  A compaction changes that. */
bool sql_can_shrink(struct sql_conn *c);

/* Sets st->shrink.  The leader's, outside of a transaction. */
void sql_shrink_look(struct sql_store *st);

/* The same after some commits, now and then: removals by hand add up.  The leader's, as above. */
void sql_shrink_look_again(struct sql_store *st);

/* Moves a few pages in one commit, or cuts file and log unless somebody reads them; then looks again.  The leader's, between transactions.
 * ERR_NO_SPACE: the disk has no room beside the log. */
enum err sql_shrink_now(struct sql_store *st);

#endif
