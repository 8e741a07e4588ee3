/* SPDX-License-Identifier: MIT
 * TABLE/.query/OPTIONS/PARTITION/ROW.json: queries as directories, and with a suffix behind
 * the options as files.  Partitions and rows are looked up anew each time (names are valid for
 * 0 s); a row's node is one version, whose pages the kernel may keep. */
#ifndef FS_QUERY_TREE_H
#define FS_QUERY_TREE_H

#include "fs/core/virtual.h"

/* What a node of NID_KIND_QUERY does: .query itself, and what is below. */
const struct vnode_ops *query_ops_of(uint64_t nid);

#endif
