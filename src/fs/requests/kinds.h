/* SPDX-License-Identifier: MIT
 * The kinds of nodes and of open files (enum kind).  Each has a file of its own: virtual.c, staged.c,
 * file.c, row.c (committed rows and old versions), dir.c.  A request finds its node here, calls the
 * method of its kind, and does not look at the kind again.  Each method answers the request, now or
 * later. */
#ifndef FS_REQUESTS_KINDS_H
#define FS_REQUESTS_KINDS_H

#include "fs/requests/ops.h"

extern const struct kind_ops kind_virtual, kind_virtual_dir, kind_staged, kind_dir, kind_file,
	kind_row, kind_old;
extern const struct kind_ops *const kinds[KIND_COUNT_]; /* fs->kinds */

/* The kind that serves a request by the node's number alone. */
static inline const struct kind_ops *kind_by_id(const struct fs *fs, uint64_t nid)
{
	return fs->kinds[vnode_ops_of(fs, nid) != NULL ? KIND_VIRTUAL : KIND_DIR];
}

/* The node that a request names. */
struct node {
	uint64_t nid;
	enum kind kind;
	struct stage *stage; /* KIND_STAGED: one reference; NULL: it has gone */
	struct item
		item; /* of the others but virtual, of whatever version; ITEM_NONE: it has gone */
	const struct content
		*content; /* KIND_ROW: pinned; then item is ITEM_NONE.  NULL: not at hand */
};

/* Finds the node as it is now: with the document for an open to read, else with attributes only.  Returns
 * false if the request is answered.  node_fini() ends the node otherwise. */
bool node_find(struct fuse_call *c, uint64_t nid, enum retry_what what, struct node *ret);
void node_fini(struct fs *fs, struct node *n);
/* Returns the item as it is; NULL: it has gone. */
static inline const struct item *node_item(const struct node *n)
{
	return n->item.kind != ITEM_NONE ? &n->item : NULL;
}

/* ---- what several kinds do ---- */

/* By open.c. */
/* O_TRUNC counts as writing. */
bool open_writes(const struct fuse_file_info *fi);
enum retry_what open_what(const struct fuse_file_info *fi);
/* Whether writes of a staged write go past the kernel's cache: it would ask for security.capability
 * before each.  A descriptor that can only write can neither read the cache nor map it. */
static inline bool writes_directly(const struct fuse_file_info *fi)
{
	return (fi->flags & O_ACCMODE) == O_WRONLY;
}
/* A thread that opens to read does not overwrite one row after the other (fs/write/speculation.h). */
void open_ends_speculation(const struct fuse_call *c, const struct fuse_file_info *fi);
/* The kernel may have given up on the request: then no release follows. */
void reply_open(struct fuse_call *c, struct handle *h, struct fuse_file_info *fi);
/* The partition of a row is over its throttle limit (service/core/heat.h). */
void refuse_throttled(struct fuse_call *c, enum err e);
/* The last close, in this thread. */
void release_now(struct fuse_call *c, struct handle *h);

/* By io.c. */
void reply_slice(struct fuse_call *c, struct span all, size_t size, off_t offset);
void reply_written(struct fuse_call *c, size_t n);
void refuse_read(struct fuse_call *c, struct handle *h, size_t size, off_t offset);
void refuse_write(struct fuse_call *c, struct handle *h, struct span bytes, off_t offset);
/* A close that commits nothing. */
void flush_nothing(struct fuse_call *c, struct handle *h, const struct fuse_file_info *fi);
/* Returns whether a close is the opener's own.  If the opener has ended, any process that still holds the
 * file counts as the opener. */
bool closes_for_opener(const struct handle *h, pid_t closer);
void sync_store(struct fuse_call *c, struct handle *h);

/* Returns the attributes besides the size that setattr sets, a mask of enum attrs_mask; in attr.c. */
uint32_t attrs_wanted(const struct stat *st, int to_set, struct attrs *ret);
/* Attributes of an item, by the node of its current version; by attr.c. */
void item_attributes(struct fuse_call *c, struct node *n);
void item_set(struct fuse_call *c, struct node *n, const struct stat *st, int to_set);
/* The same by the node of an old version. */
void old_attributes(struct fuse_call *c, struct node *n);
void old_set(struct fuse_call *c, struct node *n, const struct stat *st, int to_set);
/* The same by the node of a staged write that nobody has opened yet: of the row below it. */
void speculative_attributes(struct fuse_call *c, struct node *n);
void speculative_set(struct fuse_call *c, struct node *n, const struct stat *st, int to_set);

/* By lookup.c, create.c, name.c, attr.c, statx.c and xattr.c: KIND_DIR's methods by a node's
 * number. */
void item_lookup(struct fuse_call *c, uint64_t dir, const char *name);
void item_create(struct fuse_call *c, uint64_t dir, const char *name, mode_t mode,
	struct fuse_file_info *fi);
void item_mkdir(struct fuse_call *c, uint64_t dir, const char *name, mode_t mode);
void item_rmdir(struct fuse_call *c, uint64_t dir, const char *name);
void item_unlink(struct fuse_call *c, uint64_t dir, const char *name);
void item_rename(struct fuse_call *c, uint64_t dir, const char *name, uint64_t to,
	const char *to_name, unsigned flags);
/* By replace.c: rename(2) of a name onto a virtual node.  Returns false if the node takes over no files. */
bool virtual_replace(struct fuse_call *c, uint64_t dir, const char *name, uint64_t nid);
bool item_mode(struct fs *fs, uint64_t nid, mode_t *ret);
bool item_born(struct fs *fs, uint64_t nid, struct timespec *ret);
enum err item_xattr_get(struct fs *fs, uint64_t nid, const char *name, struct buf *out);
void item_xattr_set(struct fuse_call *c, uint64_t nid, const char *name, struct span value);
void item_xattr_remove(struct fuse_call *c, uint64_t nid, const char *name);

/* By node.c. */
/* ESTALE, for a node that is not what its name leads to.  A thread that was told so a moment ago is
 * not told again to look: this is a refusal. */
void refuse_old(struct fuse_call *c, enum retry_state state);
/* Returns the content of a node that is not the current one, pinned: if the thread's look-up found it a
 * moment ago, or if somebody has it open and the thread does not come by a name.  NULL: the request is
 * answered.  now: the item as it is; NULL: it has gone. */
const struct content *old_version(
	struct fuse_call *c, uint64_t nid, const struct item *now, enum retry_what what);

#endif
