/* SPDX-License-Identifier: MIT
 * Items as struct stat. */
#ifndef FS_TREE_ATTR_H
#define FS_TREE_ATTR_H

#include "fs/core/state.h"

#include <sys/stat.h>

void attr_of_item(const struct fs *fs, const struct item *it, struct stat *ret);
/* .rowfs and its files. */
void attr_of_control(const struct fs *fs, uint64_t nid, struct stat *ret);
/* What a new item keeps of a mode and a caller: nothing where it is the default anyway.  In a
 * directory with the set-group-ID bit it gets that group, and a new directory the bit too. */
struct attrs attr_for_new(const struct fs *fs, const struct item *parent, mode_t mode, uid_t uid,
	gid_t gid, bool dir);

/* Around a change of an ordinary file's size: until the reply the kernel goes by the size before,
 * and a read ends there. */
void attr_resize_begins(const struct fs *fs, uint64_t id, uint64_t before);
void attr_resize_ends(const struct fs *fs, uint64_t id, uint64_t before);
/* Whether such a change is under way: then the item, which may have either size, gets the one
 * before. */
bool attr_is_resizing(const struct fs *fs, struct item *it);

struct timespec attr_timespec(int64_t unix_ns);
int64_t attr_unix_ns(struct timespec t);

#endif
