/* SPDX-License-Identifier: MIT
 * A blob that is open for writing: a descriptor on a staged write. */
#ifndef FS_BLOB_WRITE_FILE_H
#define FS_BLOB_WRITE_FILE_H

#include "fs/blob/stage.h"

/* Opens a stage by its number (fs/blob/stage.h).  A descriptor that only reads commits nothing, unless
 * flags have O_CREAT. */
enum err write_file_open(struct fs *fs, uint64_t container, struct span name, uint64_t number,
	int flags, struct vfile **ret);

#endif
