/* SPDX-License-Identifier: MIT
 * The trash: a row that is removed as a file becomes an ordinary file of STORE_TRASH.  The removal
 * and the new file are one change set, so the row is neither lost nor duplicated.  The trash is
 * limited in bytes, files and age; the oldest files are removed first.  The amounts are counted in
 * memory, so a removal lists nothing.  Thread-safe. */
#ifndef SERVICE_TREE_TRASH_H
#define SERVICE_TREE_TRASH_H

#include "base/clock.h"
#include "service/tree/tree.h"

struct trash_limits {
	/* of all files; a larger row is not kept.  0: keep nothing new; existing files expire by
	 * age */
	uint64_t bytes;
	uint64_t files;    /* number of files */
	int64_t age_ticks; /* files that were removed so long ago expire */
};

/* 64 MiB, 10,000 files, 7 days. */
#define TRASH_LIMITS_USUAL \
	{ \
		(uint64_t)64 << 20, 10000, 7 * 24 * 3600 * TICKS_PER_SECOND \
	}

struct trash;
/* Counts the existing files, and is service_trash() from then on.  The caller keeps the service. */
enum err trash_new(struct service *s, const struct trash_limits *limits, struct trash **ret);
void trash_free(struct trash *t); /* accepts NULL */

/* Removes a row as tree_unlink() does and keeps its bytes.  The file is named
 * "TIME-TABLE-PARTITION-ROW.json" with the components of the path, cut if necessary.  It has the
 * row's mode, owner and time; its ctime is the time of the removal.
 *
 * A row that is too large, or for which there is no space or quota, is removed too: *ret_kept is
 * then false.  So is every row if the engine lacks STORE_CAN_SPAN.  On a full disk rows up to
 * 64 KiB are still kept, and the next trash_trim() leaves only the last few.  ERR_NOT_FOUND. */
enum err trash_unlink(
	struct trash *t, const struct dentry *at, bool *ret_kept, struct err_detail *detail);
/* The name of a file of the trash. */
struct trash_name {
	char text[LIMIT_FILE_NAME_BYTES + 1];
	size_t n;
};

/* Moves a row into the trash, as trash_unlink() does, if it has this version, and gives the file's name.  An emptied
 * partition goes, unless at->origin is the mount.  ERR_NOT_FOUND; ERR_CONDITION_NOT_MET: it has another version;
 * ERR_NOT_SUPPORTED: the trash cannot keep it, and nothing was done. */
enum err trash_keep(struct trash *t, const struct dentry *at, int64_t version,
	struct trash_name *ret, struct err_detail *detail);
/* Moves a file of the trash to a row's place in one step, and makes the partition if it is missing.  The row has
 * its document, mode, owner and times, and a new version.  ERR_NOT_FOUND: the trash has
 * no such file any more; ERR_ENTITY_EXISTS: there is such a row, which stays; errors of tree_move(). */
enum err trash_restore(struct trash *t, enum origin origin, const struct item *table,
	struct span name, struct span pk, struct span rk, struct err_detail *detail);
/* Call it when a file of this size left the trash in another way: removed, or moved out. */
void trash_left(struct trash *t, uint64_t size);

struct trash_watch {
	/* Returns true if the file is being read, so that it stays for now.  Must not call the
	 * store. */
	bool (*in_use)(void *arg, uint64_t id);
	/* For a file that was not in use: it was removed, or stays.  Threads need not wait for that
	 * any more. */
	void (*over)(void *arg, uint64_t id);
	/* A file was removed; name is valid only during the call. */
	void (*gone)(void *arg, struct span name);
	void *arg;
};
/* Sets what trash_trim() asks from now on, from any thread; before, nobody reads the files. */
void trash_set_watch(struct trash *t, const struct trash_watch *watch);
/* Removes files over the limits, and some more, so that the next calls have nothing to do.  Cheap
 * if there is nothing to remove.  One thread at a time does it; others return at once. */
void trash_trim(struct trash *t);

#endif
