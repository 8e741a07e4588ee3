/* SPDX-License-Identifier: MIT
 * The kernel keeps the names of queries and their rows for as long as it has memory, and would
 * have us keep their nodes.  Beyond QUERY_NODES_BYTES it is asked to forget those that were
 * looked up longest ago. */
#ifndef FS_QUERY_PRUNE_H
#define FS_QUERY_PRUNE_H

#include "fs/core/state.h"

#define QUERY_NODES_BYTES ((size_t)16 << 20)

/* After each lookup.  The kernel is asked by a thread for which nobody waits: it waits for the
 * locks of directories. */
void query_prune(struct fs *fs);

#endif
