/* SPDX-License-Identifier: MIT
 * Reading directories: keyed children first, then ordinary files, each in key order.  A position
 * (d_off) is the id of the entry before it.  So a listing of any size needs no memory per row, and
 * it goes on where it was, also when rows come and go. */
#ifndef FS_TREE_LISTING_H
#define FS_TREE_LISTING_H

#include "fs/core/state.h"
#include "fs/core/virtual.h"

#include <stdbool.h>
#include <sys/stat.h>

struct listing;
/* Of the directory item dir_id: as it is now (view NULL, snapshot 0), or in the view of the
 * snapshot of that number.  ERR_NOT_A_DIRECTORY, ERR_GONE. */
enum err listing_new(struct fs *fs, struct store_view *view, uint32_t snapshot, uint64_t dir_id,
	struct listing **ret);
void listing_free(struct open_quota *open_quota, struct listing *l);

/* Entries from `offset` (0: the start, else a next_offset given before); the view as in
 * listing_new().  names: of st only inode number and type are wanted.  ERR_INVALID_INPUT for a
 * position that means nothing any more, ERR_NO_MEMORY behind an entry where uid may not make
 * more be kept (open_quota.h). */
enum err listing_read(struct fs *fs, struct store_view *view, struct listing *l, uid_t uid,
	int64_t offset, bool names, listing_fn fn, void *arg);

#endif
