/* SPDX-License-Identifier: MIT
 * The control files of tables and partitions, but for .query (fs/query/tree.h): what each does.
 * Their names are in fs/tree/control_names.h; a new one is a row there and a case here. */
#ifndef FS_VIRTUAL_DIR_CONTROL_H
#define FS_VIRTUAL_DIR_CONTROL_H

#include "fs/core/virtual.h"

/* What a node of NID_KIND_DIR_CONTROL does. */
const struct vnode_ops *dir_control_ops_of(uint64_t nid);
/* vnode_ops.place of all of them: the directory and the name. */
void dir_control_place(struct fs *fs, uint64_t nid, struct span name, struct vplace *ret);
/* Attributes of a node in the directory, which has at most the mode `most`. */
void dir_control_attr(
	const struct fs *fs, const struct item *dir, uint64_t nid, mode_t most, struct stat *ret);
/* Attributes of a node in a queue or a container, of the kind `kind` and the id `id`: owner and mode
 * follow the account's, and a directory has the collection's time.  ERR_GONE. */
enum err collection_attr(struct fs *fs, enum item_kind kind, uint64_t id, uint64_t nid, mode_t most,
	struct stat *ret);
/* vnode_ops.stat of all of them: owner and mode follow the directory's, so that nobody gets
 * more by a control file than by the directory. */
enum err dir_control_stat(struct fs *fs, uint64_t nid, struct stat *ret);

#endif
