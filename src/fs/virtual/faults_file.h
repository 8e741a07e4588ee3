/* SPDX-License-Identifier: MIT
 * .rowfs/faults: the rules of faults on order (service/core/faults.h).  A reader gets those that still
 * hold.  What is written is a text of rules, and holds from the close on: with O_TRUNC it replaces
 * the rules, otherwise it adds to them.  A write that ends a wrong line is refused, and so is the
 * close then; the old rules stay. */
#ifndef FS_VIRTUAL_FAULTS_FILE_H
#define FS_VIRTUAL_FAULTS_FILE_H

#include "fs/core/virtual.h"

/* Appends the rules that still hold. */
void faults_file_show(struct fs *fs, struct buf *out);
/* Opens it for writing, by the flags of open(2). */
enum err faults_file_open(struct fs *fs, int flags, struct vfile **ret);
/* Removes all rules. */
enum err faults_file_cut(struct service *service);

#endif
