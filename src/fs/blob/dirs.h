/* SPDX-License-Identifier: MIT
 * Directories without blobs.  A program makes a directory before it writes files into it, and removes
 * it after them.  So the mount remembers directories that it made or emptied, in memory. */
#ifndef FS_BLOB_DIRS_H
#define FS_BLOB_DIRS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define BLOB_DIRS_MAX 4096

struct blob_dirs;
struct blob_dirs *blob_dirs_new(void);    /* NULL: no memory */
void blob_dirs_free(struct blob_dirs *t); /* accepts NULL */

/* Remembers a directory; its path ends with a slash.  ERR_NO_SPACE: there are BLOB_DIRS_MAX. */
enum err blob_dirs_add(struct blob_dirs *t, uint64_t container, struct span path);
/* Forgets a directory. */
void blob_dirs_remove(struct blob_dirs *t, uint64_t container, struct span path);
/* Forgets all directories on the way to a blob. */
void blob_dirs_filled(struct blob_dirs *t, uint64_t container, struct span blob);
/* Appends the first path behind `after` that begins with the prefix and has more, cut behind its next
 * slash.  Returns false if there is none. */
bool blob_dirs_next(struct blob_dirs *t, uint64_t container, struct span prefix, struct span after,
	struct buf *ret);
/* Returns whether a path begins so. */
bool blob_dirs_any(struct blob_dirs *t, uint64_t container, struct span prefix);

#endif
