/* SPDX-License-Identifier: MIT
 * Looking at a name that a writer may have begun to write. */
#ifndef FS_WRITE_LOOK_H
#define FS_WRITE_LOOK_H

#include "fs/core/state.h"
#include "fs/tree/names.h"

/* resolved_name_item() for a caller who may see or change the item: what a writer has begun there becomes
 * visible first, and that writer tells the kernel of the name from then on.  Not in a view.
 * ERR_NOT_FOUND. */
enum err name_look(struct fs *fs, struct resolved_name *t, unsigned want, struct item *ret);

#endif
