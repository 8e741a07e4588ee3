/* SPDX-License-Identifier: MIT
 * The tree below .blob of an account: what each call does there. */
#ifndef FS_BLOB_TREE_H
#define FS_BLOB_TREE_H

#include "fs/core/virtual.h"

/* What a node of NID_KIND_BLOB does. */
const struct vnode_ops *blob_ops_of(uint64_t nid);

#endif
