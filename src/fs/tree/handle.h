/* SPDX-License-Identifier: MIT
 * Open files and directories: what fi->fh points to.  A handle is counted.  The kernel holds one
 * reference from open to release.  A request on it holds one until its method returns: once the
 * reply is sent, the release may overtake the rest of the method. */
#ifndef FS_TREE_HANDLE_H
#define FS_TREE_HANDLE_H

#include "base/lock.h"
#include "base/workers.h"
#include "fs/cache/content.h"
#include "fs/core/state.h"

#include <stdatomic.h>
#include <sys/types.h>

struct listing;
struct poller;
struct dentry;
struct stage;
struct vdir;
struct vfile;

/* Of nodes, and of what is opened by them. */
enum kind {
	KIND_ROW,    /* one version of a row, pinned while it is read */
	KIND_OLD,    /* a version that was replaced or removed; open it is a KIND_ROW */
	KIND_STAGED, /* a staged write of a row */
	KIND_FILE,   /* an ordinary file */
	KIND_DIR,
	KIND_VIRTUAL,     /* fs/core/virtual.h; open it is a file */
	KIND_VIRTUAL_DIR, /* an open directory of it */
	KIND_COUNT_
};

/* Whose turn it is at a virtual file or directory (fs/requests/task.c). */
struct turns {
	struct mutex lock;
	bool taken;
	struct job *first, *last; /* the others */
};

struct handle {
	enum kind kind;
	uint64_t nid;
	bool writes;  /* handle_writes() */
	pid_t opener; /* thread id */
	struct range
		*locked; /* what was locked through it; guarded by the lock of fs/tree/locks.c */
	union {
		/* KIND_ROW: what it reads.  KIND_FILE: what the file was as a row, from the moment when
		 * that row was replaced or removed. */
		const struct content *_Atomic content;
		struct stage *stage; /* KIND_STAGED; one reference */
		struct {             /* KIND_DIR */
			struct listing *listing;
			atomic_bool linking; /* its last page may still be giving nodes to names */
		};
		struct {                    /* KIND_VIRTUAL, KIND_VIRTUAL_DIR */
			struct vfile *file; /* freed with the handle, in its pool */
			bool ready;         /* guarded by the table's lock */
			struct vdir *vdir;
			struct turns turns;
			struct poller *poller; /* guarded by turns.lock (fs/requests/poll.c) */
			size_t held; /* of the file, as counted (open_quota.h); in its turn */
		};
	};

	atomic_uint refs;
	struct handle *next, *previous; /* guarded by the table's lock */
};

struct buf;
struct fuse_call;
struct fuse_file_info;
struct node;
struct stat;

/* The operations of a kind.  fs->kinds is their table, from fs/requests/kinds.c: a handle knows
 * nothing of requests, staged writes and virtual files. */
struct kind_ops {
	/* By a node's number alone, before anything is looked up.  Only KIND_VIRTUAL and KIND_DIR have
	 * these; KIND_DIR's serve every node that is not virtual (kind_by_id()). */
	void (*lookup)(struct fuse_call *c, uint64_t dir, const char *name);
	void (*create)(struct fuse_call *c, uint64_t dir, const char *name, mode_t mode,
		struct fuse_file_info *fi);
	void (*mkdir)(struct fuse_call *c, uint64_t dir, const char *name, mode_t mode);
	void (*mknod)(
		struct fuse_call *c, uint64_t dir, const char *name); /* a file; may be NULL */
	void (*rmdir)(struct fuse_call *c, uint64_t dir, const char *name);
	void (*unlink)(struct fuse_call *c, uint64_t dir, const char *name);
	/* The kind of the destination serves a move out of a directory that is not virtual. */
	void (*rename)(struct fuse_call *c, uint64_t dir, const char *name, uint64_t to,
		const char *to_name, unsigned flags);
	void (*opendir)(struct fuse_call *c, uint64_t nid, struct fuse_file_info *fi);
	enum err (*xattr_get)(struct fs *fs, uint64_t nid, const char *name, struct buf *out);
	void (*xattr_set)(struct fuse_call *c, uint64_t nid, const char *name, struct span value);
	void (*xattr_remove)(struct fuse_call *c, uint64_t nid, const char *name);
	/* user.meta.*, and the names that are listed; NULL: there are none.  value NULL: removes it. */
	enum err (*meta_get)(struct fs *fs, uint64_t nid, const char *name, struct buf *out);
	void (*meta_set)(
		struct fuse_call *c, uint64_t nid, const char *name, const struct span *value);
	enum err (*xattr_names)(struct fs *fs, uint64_t nid, struct buf *out);
	/* What access(2) needs; false: the node has gone. */
	bool (*mode)(struct fs *fs, uint64_t nid, mode_t *ret);
	/* When the node was made.  NULL, or false: that is not known. */
	bool (*born)(struct fs *fs, uint64_t nid, struct timespec *ret);

	/* By a node.  NULL: no node is of this kind. */
	void (*open)(struct fuse_call *c, struct node *n, struct fuse_file_info *fi);
	void (*attributes)(struct fuse_call *c, struct node *n);
	void (*set)(struct fuse_call *c, struct node *n, const struct stat *st, int to_set);

	/* By an open file or directory (list).  NULL: no handle is of this kind. */
	void (*read)(struct fuse_call *c, struct handle *h, size_t size, off_t offset);
	void (*write)(struct fuse_call *c, struct handle *h, struct span bytes, off_t offset);
	void (*flush)(struct fuse_call *c, struct handle *h, const struct fuse_file_info *fi);
	void (*sync)(struct fuse_call *c, struct handle *h);
	void (*list)(struct fuse_call *c, struct handle *h, size_t size, off_t offset, bool plus);
	void (*release)(struct fuse_call *c, struct handle *h); /* the last close */

	/* The number by which the file is locked.  shows: a new name that nobody has seen gets one by
	 * which others will ask.  NULL: the id of the handle's item. */
	enum err (*lock_id)(struct fs *fs, const struct handle *h, bool shows, uint64_t *ret);
	/* Decides what the last close decides; release() calls it, and an open whose reply the kernel
	 * did not take.  NULL: nothing to decide. */
	void (*close)(struct fs *fs, struct handle *h);
	/* The kernel was cut off and will not close it.  NULL: nothing to decide. */
	void (*abandon)(struct fs *fs, struct handle *h);
	/* Lets go of what is in the union.  NULL: nothing. */
	void (*fini)(struct fs *fs, struct handle *h);
};

struct handles;
/* NULL: no memory. */
struct handles *handles_new(void);
/* Releases what a kernel that was cut off never will; staged documents are decided. */
void handles_free(struct fs *fs, struct handles *t);

/* The caller has asked open_quota_may_open().  NULL when memory is out.  KIND_FILE is counted as open
 * until freed. */
struct handle *handle_new(struct fs *fs, enum kind kind, uint64_t nid, pid_t opener);
/* A KIND_VIRTUAL has its file: handle_reading() finds it from now on. */
void handle_ready(struct handles *t, struct handle *h);
/* A handle by which this virtual node is only read, with a reference; NULL: there is none.  Slow. */
struct handle *handle_reading(struct handles *t, uint64_t nid);
/* Whether there is a handle by which this virtual node is written.  Slow. */
bool handle_is_written(struct handles *t, uint64_t nid);
/* It was opened for writing: counted until it is freed. */
void handle_writes(struct open_quota *open_quota, struct handle *h);
void handle_ref(struct handle *h);
/* KIND_DIR: whether the kernel may be linking entries of it (counted in open_dirs). */
void handle_links(struct fs *fs, struct handle *h, bool links);
/* The last one lets go of everything; a stage is not released by that (stage_close). */
void handle_unref(struct fs *fs, struct handle *h);
/* Handles on an ordinary file that became a row keep the row's content, which this is: the row has
 * been replaced or removed.  The content is pinned. */
void handles_retain(struct fs *fs, const struct content *content);
/* Whether somebody opened this node as an ordinary file's.  Slow. */
bool handles_of_file(struct fs *fs, uint64_t nid);

/* Before an ordinary file is removed: false if it is open, so that it must be kept out of sight
 * instead.  True: each later open waits for file_went(), and looks again then. */
bool file_goes(struct fs *fs, uint64_t id);
void file_went(struct fs *fs, uint64_t id);
/* Removes an ordinary file; as long as it is open it is kept out of sight only. */
enum err file_unlink(
	struct fs *fs, const struct dentry *at, uint64_t id, struct err_detail *detail);
/* Removes what was kept out of sight, if nobody has it open any more. */
void file_drop_orphan(struct fs *fs, uint64_t id);

#endif
