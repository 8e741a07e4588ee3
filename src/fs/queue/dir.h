/* SPDX-License-Identifier: MIT
 * Listings: the queues of an account, and the messages of a queue by place.  A position is the
 * id of the entry before it, so a queue of any length needs no memory. */
#ifndef FS_QUEUE_DIR_H
#define FS_QUEUE_DIR_H

#include "fs/core/virtual.h"

/* Opens the directory nid of a queue, or .queue.  ERR_NOT_A_DIRECTORY. */
enum err queue_dir_open(struct fs *fs, uint64_t nid, struct vdir **ret);
/* Sets *ret to whether anything is in the directory.  If `looks` messages of other directories did not
 * tell, it may be true of an empty one.  0: looks at as many as there are. */
enum err queue_dir_any(struct fs *fs, uint64_t nid, unsigned looks, bool *ret);

#endif
