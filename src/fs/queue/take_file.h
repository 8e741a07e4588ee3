/* SPDX-License-Identifier: MIT
 * .get, .peek and .wait of a queue.  Each read at offset 0 asks the queue anew. */
#ifndef FS_QUEUE_TAKE_FILE_H
#define FS_QUEUE_TAKE_FILE_H

#include "fs/core/virtual.h"
#include "fs/queue/nodes.h"

/* which: QUEUE_NODE_GET takes the next message, QUEUE_NODE_PEEK shows it, and QUEUE_NODE_WAIT gives
 * its id as soon as one is visible. */
enum err take_file_open(struct fs *fs, uint64_t queue, enum queue_node which, struct vfile **ret);

#endif
