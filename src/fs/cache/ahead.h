/* SPDX-License-Identifier: MIT
 * Rows that will be asked for next: tar, grep and rsync read a directory's rows in the order of
 * its keys.  After a few of them the documents of those that follow are read with one scan and
 * put among the recent ones (fs/cache/content.h), where the open that comes finds its node's content, or
 * nothing.  So does the document that is read with a name that is looked up, by those who open
 * what they look up.  So this is only a guess at what to keep: it never decides what anybody sees. */
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
