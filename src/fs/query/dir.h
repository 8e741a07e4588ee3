/* SPDX-License-Identifier: MIT
 * Listings below .query: the partitions with a match, the matching rows of one.  In key order,
 * page by page, so that one of any length starts at once and needs no memory for it.  A
 * position (d_off) is the id of the entry before it. */
#ifndef FS_QUERY_DIR_H
#define FS_QUERY_DIR_H

#include "fs/core/virtual.h"
#include "fs/query/nodes.h"

/* node: of options or of a partition, one reference of which is taken over, also on failure;
 * NULL: .query itself, which lists nothing. */
enum err query_dir_open(struct fs *fs, struct query_node *node, struct vdir **ret);

#endif
