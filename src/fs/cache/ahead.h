/* SPDX-License-Identifier: MIT
 * Read-ahead: tar, grep and rsync read a directory's rows in the order of its keys.  After a few of
 * them, one scan reads the documents of the rows that follow and puts them among the recent
 * contents (fs/cache/content.h).  The next open finds its node's content there, or nothing.  For a
 * thread that opens what it looks up, the document is read together with the name.  All this is a
 * guess at what to keep: it never decides what anybody sees. */
#ifndef FS_CACHE_AHEAD_H
#define FS_CACHE_AHEAD_H

#include "fs/core/state.h"

struct ahead;
struct ahead *ahead_new(void);
void ahead_free(struct ahead *a); /* NULL is fine */

/* Whether the row whose name is looked up will likely be opened for reading; that is: whether
 * those before it were. */
bool ahead_expects_open(struct ahead *a);
void ahead_opened(struct ahead *a);

/* The row was read from its beginning.  May read the store: call it after the reply, with no
 * lock held. */
void ahead_read(struct fs *fs, const struct item *row);

#endif
