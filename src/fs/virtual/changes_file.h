/* SPDX-License-Identifier: MIT
 * .changes of a table or a partition: the lines of service/feed/feed.h.  A read at their end gives
 * nothing once, so that cat(1) ends, and the next one waits for a change.  A position that is written to
 * the open file is where reading goes on. */
#ifndef FS_VIRTUAL_CHANGES_FILE_H
#define FS_VIRTUAL_CHANGES_FILE_H

#include "fs/core/virtual.h"

/* The method of vnode_ops for nodes of DIR_CONTROL_CHANGES.  ERR_GONE: the directory went meanwhile.
 * ERR_NOT_PERMITTED: to other users than the mount's. */
enum err changes_file_open(
	struct fs *fs, uint64_t nid, int flags, const struct caller *call, struct vfile **ret);

#endif
