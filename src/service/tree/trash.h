/* SPDX-License-Identifier: MIT
 * The trash: rows that were removed as files are kept as ordinary files of STORE_TRASH,
 * made in the same change set as the removal, so that a row is never lost and never there
 * twice.  Bounded in bytes, files and age; the oldest go first.  The bounds are counted in
 * memory, so nothing is listed for a removal.  Thread-safe. */
#ifndef SERVICE_TREE_TRASH_H
#define SERVICE_TREE_TRASH_H

#include "base/clock.h"
#include "service/tree/tree.h"

struct trash_limits {
	uint64_t bytes;    /* of all files together; a row over it is not kept.  0: nothing is
			      kept any more, and what is there goes by age */
	uint64_t files;    /* their number */
	int64_t age_ticks; /* what was removed so long ago goes */
};

/* 64 MiB, 10,000 files, 7 days. */
#define TRASH_LIMITS_USUAL \
	{ \
		(uint64_t)64 << 20, 10000, 7 * 24 * 3600 * TICKS_PER_SECOND \
	}

struct trash;
/* Counts what is there.  The service stays the caller's. */
enum err trash_new(struct service *s, const struct trash_limits *limits, struct trash **ret);
void trash_free(struct trash *t); /* NULL is fine */

/* tree_unlink() of a row, whose bytes become a file named "TIME-TABLE-PARTITION-ROW.json" (as
 * the path's components are spelled; cut where that is too long), with the row's mode, owner
 * and time; its ctime is the moment of the removal.  A row that is larger than the bound, or
 * for which there is no space or quota, is removed all the same, and so is every row where the
 * engine lacks STORE_CAN_SPAN: *ret_kept tells.  On a full disk rows up to 64 KiB are kept
 * nevertheless, and the next trash_trim() leaves the last few only.
 * ERR_NOT_FOUND. */
enum err trash_unlink(
	struct trash *t, const struct spot *at, bool *ret_kept, struct err_detail *detail);
/* A file of that size left the trash by other means: removed, or moved out. */
void trash_left(struct trash *t, uint64_t size);

struct trash_watch {
	/* Whether somebody reads the file: it stays for now.  Must not call into the store. */
	bool (*in_use)(void *arg, uint64_t id);
	/* What was not in use has gone, or stays after all: nobody needs to wait for that any more. */
	void (*over)(void *arg, uint64_t id);
	/* A file went; its name is borrowed for the call. */
	void (*gone)(void *arg, struct span name);
	void *arg;
};
/* Removes what is over the bounds, and then some, so that the next ones need not.  Cheap where
 * nothing is.  One thread at a time does it, others return at once. */
void trash_trim(struct trash *t, const struct trash_watch *watch);

#endif
