/* SPDX-License-Identifier: MIT
 * Requests for virtual nodes, in three files: virtual.c by node, virtual_xattr.c for attributes,
 * virtual_handle.c by open file. */
#ifndef FS_REQUESTS_VIRTUAL_H
#define FS_REQUESTS_VIRTUAL_H

#include "fs/requests/kinds.h"
#include "fs/requests/task.h"

/* By poll.c: the handle is being closed. */
void poll_end(struct handle *h);

/* By virtual_handle.c: methods of KIND_VIRTUAL and KIND_VIRTUAL_DIR. */
void virtual_read(struct fuse_call *c, struct handle *h, size_t size, off_t offset);
void virtual_write(struct fuse_call *c, struct handle *h, struct span bytes, off_t offset);
void virtual_flush(struct fuse_call *c, struct handle *h, const struct fuse_file_info *fi);
void virtual_sync(struct fuse_call *c, struct handle *h);
void virtual_release(struct fuse_call *c, struct handle *h);
void virtual_fini(struct fs *fs, struct handle *h);
enum err virtual_lock_id(struct fs *fs, const struct handle *h, bool shows, uint64_t *ret);
enum vpool virtual_pool(const struct handle *h);
/* Makes the handle of an open file or directory, which takes f or d over, also on failure.  NULL:
 * memory is out. */
struct handle *virtual_handle(struct task *t, struct vfile *f, struct vdir *d);

/* Answers an error, or success, with the words of the node's room where nobody has others. */
void virtual_refuse(struct fuse_call *c, uint64_t nid, enum err e);
/* Refuses a change that the room does not give. */
static inline void virtual_refuse_change(struct fuse_call *c, uint64_t nid)
{
	virtual_refuse(c, nid, vnode_ops_of(c->fs, nid)->refusal);
}

/* By virtual_xattr.c: methods of KIND_VIRTUAL. */
enum err virtual_xattr_get(struct fs *fs, uint64_t nid, const char *name, struct buf *out);
void virtual_xattr_set(struct fuse_call *c, uint64_t nid, const char *name, struct span value);
void virtual_xattr_remove(struct fuse_call *c, uint64_t nid, const char *name);
enum err virtual_meta_get(struct fs *fs, uint64_t nid, const char *name, struct buf *out);
void virtual_meta_set(
	struct fuse_call *c, uint64_t nid, const char *name, const struct span *value);
enum err virtual_xattr_names(struct fs *fs, uint64_t nid, struct buf *out);

#endif
