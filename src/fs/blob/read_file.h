/* SPDX-License-Identifier: MIT
 * A blob that is open for reading, and a page blob also for writing. */
#ifndef FS_BLOB_READ_FILE_H
#define FS_BLOB_READ_FILE_H

#include "fs/core/virtual.h"
#include "service/blobs/blob_find.h"

/* Opens a block blob in the version that `blob` has, or a page blob as it is at each read.  flags:
 * open(2)'s, of which O_TRUNC is done.  Takes *blob over, also on an error. */
enum err read_file_open(
	struct fs *fs, uint64_t container, struct blob_info *blob, int flags, struct vfile **ret);

#endif
