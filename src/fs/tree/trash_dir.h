/* SPDX-License-Identifier: MIT
 * .rowfs/trash as the mount has it: service/tree/trash.h, and the kernel told of what comes and
 * goes.  Its files are read, moved out and removed, but not written, nor are new ones made. */
#ifndef FS_TREE_TRASH_DIR_H
#define FS_TREE_TRASH_DIR_H

#include "fs/core/state.h"
#include "service/tree/trash.h"

/* unlink(2) of a row: as trash_unlink(). */
enum err trash_dir_unlink(struct fs *fs, const struct dentry *at, struct err_detail *detail);
/* An item was removed or moved: counted where it was a file of the trash. */
void trash_dir_left(struct trash *trash, const struct item *was);
/* From now on the mount is asked which files of the trash are being read. */
void trash_dir_watch(struct fs *fs);
/* What is too old goes; before the trash is looked at. */
void trash_dir_tidy(struct fs *fs);
/* Whether it is a file of the trash: nobody writes to it. */
static inline bool trash_dir_has(const struct item *it)
{
	return it->parent == STORE_TRASH && it->kind == ITEM_FILE;
}

#endif
