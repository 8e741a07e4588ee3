/* SPDX-License-Identifier: MIT
 * Extended attributes: user.rowfs.* answer to their names but are not listed.  What an
 * item tells of itself is in fs/tree/facts.h. */
#ifndef FS_REQUESTS_XATTR_H
#define FS_REQUESTS_XATTR_H

#include "base/buf.h"
#include "fs/core/state.h"

#include <stdbool.h>

/* Whether the name is one of ours: others are answered without touching the store. */
bool xattr_is_ours(const char *name);
/* Of one of ours, what is behind "user.rowfs.". */
const char *xattr_behind_prefix(const char *name);
/* ERR_NO_ATTRIBUTE.  What tells the version tells that of the node's content, also when the row
 * has another one by now; ERR_GONE where that is not known any more. */
enum err xattr_get(struct fs *fs, uint64_t nid, const char *name, struct buf *out);
/* user.rowfs.if_match only, of a descriptor that writes a row, or of an ordinary file; by a row's
 * path, and for others: ERR_NOT_PERMITTED. */
enum err xattr_set(struct fs *fs, uint64_t nid, const char *name, struct span value,
	struct err_detail *detail);
enum err xattr_remove(struct fs *fs, uint64_t nid, const char *name, struct err_detail *detail);

#endif
