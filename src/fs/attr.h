/* SPDX-License-Identifier: MIT
 * Items as struct stat. */
#ifndef FS_ATTR_H
#define FS_ATTR_H

#include "fs/state.h"

#include <sys/stat.h>

void attr_of_item(const struct fs *fs, const struct item *it, struct stat *ret);
/* .rowfs and its files. */
void attr_of_control(const struct fs *fs, uint64_t nid, struct stat *ret);
/* What a new item keeps of a mode and a caller: nothing where it is the default anyway. */
struct attrs attr_for_new(const struct fs *fs, mode_t mode, uid_t uid, gid_t gid, bool dir);
struct timespec attr_timespec(int64_t unix_ns);
int64_t attr_unix_ns(struct timespec t);

#endif
