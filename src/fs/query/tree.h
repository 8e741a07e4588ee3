/* SPDX-License-Identifier: MIT
 * TABLE/.query/OPTIONS/PARTITION/ROW.json: queries as directories, and with a suffix behind
 * the options as files.  Partitions and rows are looked up anew each time (names are valid for
 * 0 s); a row's node is one version, whose pages the kernel may keep. */
#ifndef FS_QUERY_TREE_H
#define FS_QUERY_TREE_H

#include "fs/core/virtual.h"

/* .query itself (dir_control_stat() is its stat). */
extern const struct vnode_ops query_root_ops;
/* What is below. */
const struct vnode_ops *query_tree_ops(uint64_t nid);

#endif
