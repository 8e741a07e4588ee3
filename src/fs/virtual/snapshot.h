/* SPDX-License-Identifier: MIT
 * .rowfs/snapshots and the trees below it: the store as it was when the snapshot's directory
 * was made, by the same names as in the mount.  Nothing in them changes, so the kernel may
 * keep all but the snapshots' own names; the nodes of one that was let go answer ERR_GONE. */
#ifndef FS_VIRTUAL_SNAPSHOT_H
#define FS_VIRTUAL_SNAPSHOT_H

#include "fs/core/virtual.h"

/* What a node of NID_KIND_SNAPSHOT does. */
const struct vnode_ops *snapshot_ops_of(uint64_t nid);

/* Hands the mount's bounds to the service; from now on a snapshot or a stream's view that is
 * ended by force is told of, and the kernel drops what it kept of it. */
void snapshots_start(struct fs *fs);
/* Before the notifier and the reasons go. */
void snapshots_stop(struct service *service);

#endif
