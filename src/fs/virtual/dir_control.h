/* SPDX-License-Identifier: MIT
 * The control files of tables and partitions: .batch, .query and their kin.  They answer to
 * lookup and are listed on wish only (control=list).  A new one is a row in the table in
 * dir_control.c. */
#ifndef FS_VIRTUAL_DIR_CONTROL_H
#define FS_VIRTUAL_DIR_CONTROL_H

#include "fs/core/nid.h"
#include "fs/core/virtual.h"
#include "store/store.h"

/* The node of the control file `name` of this directory; 0: it has none of that name. */
uint64_t dir_control_find(const struct item *dir, struct span name);
/* The index-th name in directories of this kind; false at the end. */
bool dir_control_entry(
	enum item_kind kind, size_t index, const char **ret_name, enum dir_control *ret_which);
/* What a control node does. */
const struct vnode_ops *dir_control_ops(uint64_t nid);
/* Its name. */
struct span dir_control_name(uint64_t nid);
/* vnode_ops.xattr_get: "error" is the last reason that reasons_add() was given for the name. */
enum err dir_control_xattr_get(struct fs *fs, uint64_t nid, const char *name, struct buf *out);
/* vnode_ops.stat of all of them: owner and mode follow the directory's, so that nobody gets
 * more by a control file than by the directory. */
enum err dir_control_stat(struct fs *fs, uint64_t nid, struct stat *ret);

#endif
