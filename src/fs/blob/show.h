/* SPDX-License-Identifier: MIT
 * Attributes of blobs and of their directories: stat(2), user.rowfs.* and user.meta.*. */
#ifndef FS_BLOB_SHOW_H
#define FS_BLOB_SHOW_H

#include "base/buf.h"
#include "fs/blob/find.h"
#include "fs/core/virtual.h"

/* Attributes of the node.  ERR_GONE. */
enum err blob_stat(struct fs *fs, uint64_t nid, struct stat *ret);
/* Makes the node of what was found, counts a lookup of it, and sets its attributes. */
enum err blob_entry(
	struct fs *fs, uint64_t container, const struct blob_found *found, struct ventry *ret);
/* Sets the entry of the snapshots of a directory's blobs, and counts a lookup of it. */
enum err blob_snapshots_entry(struct fs *fs, const struct blob_dir *dir, struct ventry *ret);
/* Sets the entry of a container. */
enum err blob_container_entry(struct fs *fs, uint64_t id, struct ventry *ret);

/* Finds the blob of a node in the version that the node stands for.  On ERR_OK call blob_info_fini().
 * ERR_GONE: it was replaced or removed.  ERR_IS_A_DIRECTORY. */
enum err blob_of_node(struct fs *fs, const struct blob_node *n, struct blob_info *ret);

/* Sets a property by the name of its attribute.  Returns false if nobody may set it. */
bool blob_property_set(struct blob_properties *p, const char *name, struct span value);

/* Append one of the attributes user.rowfs.* or user.meta.* of a blob, or the names of all.
 * ERR_NO_ATTRIBUTE, ERR_GONE. */
enum err blob_fact(struct fs *fs, uint64_t nid, const char *name, struct buf *out);
enum err blob_meta(struct fs *fs, uint64_t nid, const char *name, struct buf *out);
enum err blob_attribute_names(struct fs *fs, uint64_t nid, struct buf *out);

#endif
