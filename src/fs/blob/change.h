/* SPDX-License-Identifier: MIT
 * Changes by names and attributes: methods of vnode_ops (fs/core/virtual.h). */
#ifndef FS_BLOB_CHANGE_H
#define FS_BLOB_CHANGE_H

#include "fs/core/virtual.h"

enum err blob_unlink(struct fs *fs, uint64_t dir, struct span name, const struct caller *call);
enum err blob_rename(struct fs *fs, const struct vmove *move, const struct caller *call);
/* Of a directory in a container. */
enum err blob_mkdir(struct fs *fs, uint64_t dir, struct span name, const struct caller *call,
	struct ventry *ret);
enum err blob_rmdir(struct fs *fs, uint64_t dir, struct span name, const struct caller *call);
/* Setting an attribute commits what is staged for the blob. */
enum err blob_xattr_set(struct fs *fs, uint64_t nid, const char *name, struct span value,
	const struct caller *call);
enum err blob_meta_set(struct fs *fs, uint64_t nid, const char *name, const struct span *value,
	const struct caller *call);
enum err blob_resize(struct fs *fs, uint64_t nid, uint64_t size, const struct caller *call);

#endif
