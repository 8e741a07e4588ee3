/* SPDX-License-Identifier: MIT
 * Listings: the containers of an account, and the names in a container or a directory.  A position
 * stands for the name before it, so a directory of any length takes the memory of two replies. */
#ifndef FS_BLOB_DIR_H
#define FS_BLOB_DIR_H

#include "fs/core/virtual.h"

/* Opens a directory.  ERR_NOT_A_DIRECTORY, ERR_GONE. */
enum err blob_dir_open(struct fs *fs, uint64_t nid, struct vdir **ret);

#endif
