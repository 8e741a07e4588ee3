/* SPDX-License-Identifier: MIT
 * .rowfs/rejected: what was refused is kept there as ordinary files of the store, bounded
 * (the oldest go first), so that nothing that a person wrote is thrown away.  On a full disk
 * small ones are kept in a part of the space that is kept free for removing. */
#ifndef FS_REFUSED_REJECTED_H
#define FS_REFUSED_REJECTED_H

#include "fs/core/state.h"

#define REJECTED_MAX_FILES 1000
#define REJECTED_MAX_BYTES (64u * 1024 * 1024)
#define REJECTED_NAME_MAX 256
/* Larger ones are not kept on a full disk; for others all but the last few give way. */
#define REJECTED_FULL_BYTES (64u * 1024)

/* Keeps the bytes under a new name made of the time and the component; fills out_name and
 * *ret_id.  *ret_id != 0 on entry: that file goes for it, since the kernel may have pages of it.
 * Where the store cannot take them they wait in memory (unsaved.h) under that name, and go there as
 * soon as it can.  On failure, which the log tells, out_name is "" and *ret_id what it was. */
enum err rejected_save(struct fs *fs, struct span component, struct span bytes, uint64_t *ret_id,
	char out_name[REJECTED_NAME_MAX]);
/* More bytes, at its end, unless its end is just these: a write that was tried again.  ERR_NOT_FOUND where it is gone, ERR_FILE_TOO_LARGE where it would be
 * larger than a quarter of all that is kept. */
enum err rejected_append(struct fs *fs, uint64_t id, struct span bytes);
/* rejected_save() of the text with the bytes at an offset that could not be put there; of the text
 * alone, or of the bytes where there is none, if that would be too much. */
enum err rejected_save_with(struct fs *fs, struct span component, struct span text, size_t offset,
	struct span bytes, uint64_t *ret_id, char out_name[REJECTED_NAME_MAX]);
/* Moves waiting bytes from memory to the store, if it takes them now. */
void rejected_retry(struct fs *fs);
/* The same after a change that the store took, but not at every one; costs nothing where nothing
 * waits. */
void rejected_retry_in_turn(struct fs *fs);
/* The bytes were accepted after all. */
void rejected_drop(struct fs *fs, uint64_t id);

#endif
