/* SPDX-License-Identifier: MIT
 * .rowfs/rejected: what was refused is kept there as ordinary files of the store, bounded
 * (the oldest go first), so that nothing that a person wrote is thrown away. */
#ifndef FS_REJECTED_H
#define FS_REJECTED_H

#include "fs/state.h"

#define REJECTED_MAX_FILES 1000
#define REJECTED_MAX_BYTES (64u * 1024 * 1024)
#define REJECTED_NAME_MAX 256

/* Keeps the bytes under a new name made of the time and the component; fills out_name and
 * *ret_id.  *ret_id != 0 on entry: that file gets these bytes instead.  On failure, which the
 * log tells, out_name is "". */
enum err rejected_save(struct fs *fs, struct span component, struct span bytes, uint64_t *ret_id,
	char out_name[REJECTED_NAME_MAX]);
/* More bytes, at its end.  ERR_NOT_FOUND where it is gone, ERR_FILE_TOO_LARGE where it would be
 * larger than a quarter of all that is kept. */
enum err rejected_append(struct fs *fs, uint64_t id, struct span bytes);
/* The bytes were accepted after all. */
void rejected_drop(struct fs *fs, uint64_t id);

#endif
