/* SPDX-License-Identifier: MIT
 * Extended attributes: user.rowfs.*, and user.meta.* of containers and blobs.  Those of a blob that
 * somebody set are listed; all others answer to their names.  What an item tells of itself is in fs/tree/facts.h.  Each kind answers (fs/requests/kinds.h). */
#ifndef FS_REQUESTS_XATTR_H
#define FS_REQUESTS_XATTR_H

#include <stdbool.h>

/* Whether the name is one of ours: others are answered without touching the store. */
bool xattr_is_ours(const char *name);
/* Of one of ours, what is behind "user.rowfs.". */
const char *xattr_behind_prefix(const char *name);
/* Returns what is behind "user.meta."; NULL: the name does not begin so. */
const char *xattr_meta_name(const char *name);

#endif
