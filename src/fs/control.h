/* SPDX-License-Identifier: MIT
 * .rowfs: the mount's own files, made when they are opened.  A new one is a row in the
 * table in control.c. */
#ifndef FS_CONTROL_H
#define FS_CONTROL_H

#include "base/buf.h"
#include "fs/state.h"

#include <stdbool.h>

/* The node of an entry of .rowfs (a control file, or a folder of the store); 0: none. */
uint64_t control_find(struct span name);
/* The index-th entry for a listing; false at the end. */
bool control_entry(size_t index, const char **ret_name, uint64_t *ret_nid);
/* The content of a control file.  ERR_IS_A_DIRECTORY for .rowfs itself. */
enum err control_read(struct fs *fs, uint64_t nid, struct buf *out);

#endif
