/* SPDX-License-Identifier: MIT
 * Virtual nodes: all that no live item stands behind as it is, from .rowfs and the control
 * files of tables and partitions to queues, snapshots and queries.  A room serves one kind of
 * them, with all names below its directories, by a struct vnode_ops; fs/requests/virtual.c asks it
 * and replies, so that no room knows FUSE.  A new kind is a value of enum nid_kind, and an entry in
 * the table that fs/session/session.c fills.
 *
 * Threads: methods may be called by many threads at once, but those of one open file, and of
 * one open directory, one at a time.  What may wait for long names a pool; threads of the
 * mount's request loop are never kept waiting. */
#ifndef FS_CORE_VIRTUAL_H
#define FS_CORE_VIRTUAL_H

#include "base/buf.h"
#include "fs/core/state.h"
#include "fs/core/waiters.h"
#include "model/limits.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

struct requester;

/* Takes one entry of a directory.  Returns false when the reply is full: the entry will come again.
 * nid is 0 for "." and "..". */
typedef bool (*listing_fn)(
	void *arg, const char *name, uint64_t nid, const struct stat *st, int64_t next_offset);

/* The process that sent the request. */
struct caller {
	uid_t uid;
	gid_t gid;
	pid_t thread; /* 0: of another PID namespace */
	const struct requester
		*requester;        /* NULL: may see and change all that the node's mode gives */
	struct err_detail *detail; /* why it is refused; NULL where nobody is answered */
	/* Whether the caller gave up (a signal) or the mount is going: a method that takes long
	 * asks now and then, and answers ERR_CANCELLED. */
	bool (*interrupted)(const struct caller *call);
};

static inline bool caller_interrupted(const struct caller *call)
{
	return call->interrupted != NULL && call->interrupted(call);
}

/* What a name means. */
struct ventry {
	uint64_t nid;
	struct stat st;
	double valid_s; /* how long the kernel may keep the name and its attributes */
	bool lasting;   /* the name means this node as long as the directory is there: only its
			   attributes are valid for valid_s */
	bool moment;    /* a file that is made when it is opened: each look-up has a node of its
			   own (fs/core/nid.h) */
};

/* A rename: from and to are directories, one of them of the room that is asked. */
struct vmove {
	uint64_t from, to;
	struct span name, to_name; /* a NUL is behind each */
	unsigned flags;            /* rename(2)'s */
};

/* Where the reason of a refusal is kept, and found (user.rowfs.error). */
struct vplace {
	uint64_t dir;     /* as in struct refusal */
	struct span name; /* the caller's, permanent, or in text */
	uint64_t inside;  /* as in reasons_get() */
	char text[LIMIT_FILE_NAME_BYTES + 1];
};

/* ---- an open file ---- */

/* What a read waits for: a wake of the key (fs/core/waiters.h), or a time. */
struct vwait {
	bool waits;
	uint64_t key, until_us; /* of CLOCK_MONOTONIC */
	uint64_t seen;          /* of waiters_seen(), from before it looked */
};

struct vfile;
struct vfile_ops {
	enum vpool pool;
	/* A read that answers ERR_CANCELLED and is asked again goes on where it was: then it is
	 * broken off for others of its pool, too, and goes on behind them. */
	bool resumes;
	/* Up to n bytes at offset, appended to out; none: the end.  May be fewer than n. */
	enum err (*read)(struct vfile *f, const struct caller *call, uint64_t offset, size_t n,
		struct buf *out);
	/* How many bytes it has, exactly.  May take as long as reading all; goes on like a read
	 * that resumes.  NULL: nobody knows, and stat(2) says 0. */
	enum err (*size)(struct vfile *f, const struct caller *call, uint64_t *ret);
	/* Whether a read would wait.  It may run beside another method.  NULL: never. */
	enum err (*poll)(struct vfile *f, struct vwait *ret);
	/* All of the bytes, or an error.  NULL: ERR_NOT_PERMITTED. */
	enum err (*write)(
		struct vfile *f, const struct caller *call, uint64_t offset, struct span bytes);
	/* Sets *ret to the next data, or hole, from the offset on; the end is a hole.  ERR_BEHIND_END.
	 * NULL: all is data. */
	enum err (*seek)(struct vfile *f, bool hole, uint64_t offset, uint64_t *ret);
	/* fallocate(2) with its mode.  NULL: ERR_NOT_SUPPORTED. */
	enum err (*allocate)(
		struct vfile *f, const struct caller *call, int mode, uint64_t offset, uint64_t n);
	/* A close by the process that opened it; may come more than once, and be followed by
	 * more writes.  NULL: nothing to do. */
	enum err (*close)(struct vfile *f, const struct caller *call);
	/* fsync.  NULL: store_sync(). */
	enum err (*sync)(struct vfile *f, const struct caller *call);
	/* How much memory it holds; it is asked after each of those above.  NULL: little. */
	size_t (*holds)(const struct vfile *f);
	/* After the last close: decides what no close decided, frees f. */
	void (*free)(struct vfile *f);
};

/* The first member of each kind's own struct. */
struct vfile {
	const struct vfile_ops *ops;
	struct fs *fs;
	bool immutable; /* the node's content never changes: the kernel may keep it, and its
			   size is the node's; else direct I/O */
	uint64_t
		lock_id; /* what its locks are kept by, where several nodes share them; 0: the node */
	/* Set by a read: it is asked again later, and holds no thread meanwhile. */
	struct vwait wait;
	bool noted; /* set by a method whose error has its reason (fs/refused/reason.h) already */
	atomic_bool
		write_lost; /* a write was refused for lack of memory, so the content has a gap */
	bool unopened;      /* the open(2) failed: free commits nothing */
};

/* Frees a file that no descriptor has reached. */
static inline void vfile_drop(struct vfile *f)
{
	f->unopened = true;
	f->ops->free(f);
}

/* A file whose content is known: takes over *content. */
enum err vfile_of_content(struct fs *fs, struct buf *content, bool immutable, struct vfile **ret);

/* ---- an open directory ---- */

struct vdir;
struct vdir_ops {
	enum vpool pool;
	/* Entries behind `offset` (0: from the start, with "." and ".."), until fn answers false
	 * or there are no more.  A nid handed to fn counts as looked up where the kernel asks
	 * with attributes; 0: the kernel shall look the name up itself. */
	enum err (*read)(struct vdir *d, const struct caller *call, int64_t offset, listing_fn fn,
		void *arg);
	void (*free)(struct vdir *d);
};
struct vdir {
	const struct vdir_ops *ops;
	struct fs *fs;
};

/* ---- a kind of node ---- */

/* What is NULL is refused: with `refusal` where it would change something, else as not there. */
struct vnode_ops {
	enum vpool
		pool; /* of lookup, open and opendir; what changes something runs in VPOOL_CHANGE,
			    the rest inline */
	enum err refusal; /* ERR_READ_ONLY, ERR_NOT_PERMITTED */
	const char *why;  /* the words of a refusal: what to do instead */
	bool takes_attrs; /* times, mode, and truncation without resize(): accepted, without effect */
	bool moments;     /* as ventry.moment, of a control file */

	/* Attributes of a node that the kernel knows.  ERR_GONE. */
	enum err (*stat)(struct fs *fs, uint64_t nid, struct stat *ret);
	/* ERR_NOT_FOUND where there is no such name: that is not kept by the kernel. */
	enum err (*lookup)(struct fs *fs, uint64_t dir, struct span name, const struct caller *call,
		struct ventry *ret);
	enum err (*opendir)(
		struct fs *fs, uint64_t nid, const struct caller *call, struct vdir **ret);
	/* flags: open(2)'s.  ERR_GONE: the kernel looks the name up again. */
	enum err (*open)(struct fs *fs, uint64_t nid, int flags, const struct caller *call,
		struct vfile **ret);
	/* The node is cut to size 0; other changes of attributes are refused.  NULL: also this one. */
	enum err (*cut)(struct fs *fs, uint64_t nid);
	/* rename(2) of an ordinary file onto the node, which takes over what is in it: as if it were
	 * written there and closed.  *ret_noted: the error has its reason.  NULL: refused. */
	enum err (*replace)(struct fs *fs, uint64_t nid, const struct item *file,
		const struct caller *call, bool *ret_noted);
	/* n lookups of the node are taken back; NULL: nothing is kept per node. */
	void (*forget)(struct fs *fs, uint64_t nid, uint64_t n);
	enum err (*mkdir)(struct fs *fs, uint64_t dir, struct span name, const struct caller *call,
		struct ventry *ret);
	/* An empty name: the directory itself, in a directory of items. */
	enum err (*rmdir)(struct fs *fs, uint64_t dir, struct span name, const struct caller *call);
	/* A new file, open; or, without O_EXCL in flags, one that is there by now. */
	enum err (*create)(struct fs *fs, uint64_t dir, struct span name, int flags,
		const struct caller *call, struct ventry *ret, struct vfile **ret_file);
	/* A new empty file, as by create() and a close.  NULL: refused. */
	enum err (*mknod)(struct fs *fs, uint64_t dir, struct span name, const struct caller *call,
		struct ventry *ret);
	enum err (*unlink)(
		struct fs *fs, uint64_t dir, struct span name, const struct caller *call);
	/* Also a move from or to a directory of another room, or of items: ERR_CROSS_DEVICE has
	 * mv(1) copy. */
	enum err (*rename)(struct fs *fs, const struct vmove *move, const struct caller *call);
	enum err (*resize)(struct fs *fs, uint64_t nid, uint64_t size, const struct caller *call);
	/* name: behind "user.rowfs.", but not "error".  ERR_NO_ATTRIBUTE. */
	enum err (*xattr_get)(struct fs *fs, uint64_t nid, const char *name, struct buf *out);
	enum err (*xattr_set)(struct fs *fs, uint64_t nid, const char *name, struct span value,
		const struct caller *call);
	/* user.meta.*; name: behind the prefix.  ERR_NO_ATTRIBUTE.  value NULL: removes it. */
	enum err (*meta_get)(struct fs *fs, uint64_t nid, const char *name, struct buf *out);
	enum err (*meta_set)(struct fs *fs, uint64_t nid, const char *name,
		const struct span *value, const struct caller *call);
	/* Appends the names of the attributes that are listed, each with its NUL. */
	enum err (*xattr_names)(struct fs *fs, uint64_t nid, struct buf *out);
	/* Of a name in the directory nid, or of the node itself (name.p is NULL).  Never NULL. */
	void (*place)(struct fs *fs, uint64_t nid, struct span name, struct vplace *ret);
};

/* What a node does; NULL: it is an item's or a staged write's. */
static inline const struct vnode_ops *vnode_ops_of(const struct fs *fs, uint64_t nid)
{
	enum nid_kind kind = nid_kind(nid);
	return fs->vnode_ops[kind] != NULL ? fs->vnode_ops[kind](nid) : NULL;
}

/* The kernel takes n lookups of a node back. */
static inline void vnode_forget(struct fs *fs, uint64_t nid, uint64_t n)
{
	const struct vnode_ops *ops = vnode_ops_of(fs, nid);
	if (ops != NULL && ops->forget != NULL)
		ops->forget(fs, nid_base(nid), n);
}

#endif
