/* SPDX-License-Identifier: MIT
 * What users make the daemon keep by having files open, and where that ends: with allow_other
 * they are not the owner's friends.  Bounds are for all together; of each the owner of the
 * mount and root alone can have the last quarter, so that they always get in. */
#ifndef FS_TREE_HELD_H
#define FS_TREE_HELD_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct fs;

#define HELD_HANDLES 65536
#define HELD_BYTES ((size_t)256 << 20)
#define HELD_RANGES 65536

struct held {
	atomic_size_t handles; /* open files and directories */
	atomic_size_t writers; /* of them, opened for writing */
	/* Documents that are being written, contents of control files, what importers know of
	 * names, where listings are. */
	atomic_size_t bytes;
	size_t max_handles, max_bytes; /* rows that are being read may pin max_bytes, too */
	size_t max_ranges;             /* that are locked (locks.h, which counts them) */
};

/* With the bounds above, or those of ROWFS_MOUNT_LIMITS ("handles=100,bytes=1000000,ranges=40"),
 * which is for tests.  free(3) ends it; NULL: no memory. */
struct held *held_new(void);
/* Whether the last quarter is this user's, too. */
bool held_is_first(const struct fs *fs, uid_t uid);
/* Whether this user may have one more file open.  ERR_TOO_MANY_OPEN. */
enum err held_may_open(const struct fs *fs, uid_t uid, struct err_detail *detail);
/* Whether what an open file was may be kept beside what rows pin. */
bool held_may_keep(const struct fs *fs);
/* Whether more may be written before something is committed or closed. */
bool held_may_grow(const struct fs *fs, uid_t uid);
/* *own is what was counted for one owner of memory; from now on it is `now`. */
void held_set(struct fs *fs, size_t *own, size_t now);

#endif
