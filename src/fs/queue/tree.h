/* SPDX-License-Identifier: MIT
 * The tree below .queue of an account: what each call does there. */
#ifndef FS_QUEUE_TREE_H
#define FS_QUEUE_TREE_H

#include "fs/core/virtual.h"

/* What a node of NID_KIND_QUEUE does. */
const struct vnode_ops *queue_ops_of(uint64_t nid);

#endif
