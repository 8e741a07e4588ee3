/* SPDX-License-Identifier: MIT
 * The state of this folder for one mount; struct fs points to it. */
#ifndef FS_BLOB_ROOM_H
#define FS_BLOB_ROOM_H

#include "fs/blob/dirs.h"
#include "fs/blob/nodes.h"
#include "fs/blob/stage.h"

struct blob_room {
	struct blob_nodes *nodes;
	struct blob_stages *stages;
	struct blob_dirs *dirs;
};

struct blob_room *blob_room_new(void);    /* NULL: no memory */
void blob_room_free(struct blob_room *r); /* accepts NULL */

#endif
