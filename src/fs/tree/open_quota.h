/* SPDX-License-Identifier: MIT
 * The quota of open state: how much users can make the daemon keep by opening files.  With allow_other
 * a user may be hostile.  The bounds are for all users together.  The last quarter of each is for the
 * owner of the mount and root alone, so that they always get in. */
#ifndef FS_TREE_OPEN_QUOTA_H
#define FS_TREE_OPEN_QUOTA_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct fs;

#define OPEN_QUOTA_HANDLES 65536
#define OPEN_QUOTA_BYTES ((size_t)256 << 20)
#define OPEN_QUOTA_RANGES 65536

struct open_quota {
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
struct open_quota *open_quota_new(void);
/* Returns true if this user may use the last quarter, too. */
bool open_quota_is_first(const struct fs *fs, uid_t uid);
/* ERR_TOO_MANY_OPEN: this user may not have one more file open. */
enum err open_quota_may_open(const struct fs *fs, uid_t uid, struct err_detail *detail);
/* Returns true if a closed file's content may stay beside what rows pin. */
bool open_quota_may_keep(const struct fs *fs);
/* Returns true if more may be written before something is committed or closed. */
bool open_quota_may_grow(const struct fs *fs, uid_t uid);
/* *own is what was counted for one owner of memory; from now on it is `now`. */
void open_quota_set(struct open_quota *open_quota, size_t *own, size_t now);

#endif
