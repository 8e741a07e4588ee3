/* SPDX-License-Identifier: MIT
 * .batch and .batch-check of tables and partitions: what is written to one is a change set
 * (service/change/change_set.h), what is read from one is its result.  Each handle gathers a text of
 * its own.
 *
 *   decided        at a close by the opener, at the first read behind a write, at fsync
 *                  (durable), and at the end of the handle
 *   an incomplete  is an error then, and stays: more bytes may complete it
 *   all others     are over, done or failed; the next write begins another change set, where
 *                  it may stand in the file
 *   the result     is read behind what was written, where the offset of a reader who wrote
 *                  stands; from offset 0 on once somebody reads before that
 *
 * A failed change set is the error of every close until its result was read, or another is
 * begun. */
#ifndef FS_VIRTUAL_BATCH_FILE_H
#define FS_VIRTUAL_BATCH_FILE_H

#include "fs/core/virtual.h"

/* Methods of vnode_ops for nodes of DIR_CONTROL_BATCH and DIR_CONTROL_BATCH_CHECK.  ERR_GONE:
 * the directory is no more. */
enum err batch_file_open(
	struct fs *fs, uint64_t nid, int flags, const struct caller *call, struct vfile **ret);

#endif
