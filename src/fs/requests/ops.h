/* SPDX-License-Identifier: MIT
 * The request handlers' common ground.  Only this room, fs/session and fs/cache/notify.c know
 * libfuse; every handler sends exactly one reply, through these functions. */
#ifndef FS_REQUESTS_OPS_H
#define FS_REQUESTS_OPS_H

#include "fs/core/state.h"
#include "fs/core/virtual.h"
#include "fs/tree/handle.h"
#include "fs/tree/told.h"
#include "fs/write/retries.h"

#include <fuse_lowlevel.h>

/* One request on its way: begin, then one of the replies, which counts it. */
struct fuse_call {
	struct fs *fs;
	fuse_req_t req;  /* NULL: */
	uint64_t unique; /* the number of a request that libfuse does not know (statx.c) */
	pid_t tid;       /* the client's thread */
	uid_t uid;
	gid_t gid;
	enum op op;
	uint64_t start_us;
	/* Its object, where the reason of a refusal is noted: the node, or a name in the directory
	 * nid.  Names are borrowed, and must live until the reply. */
	uint64_t nid;
	const char *name;
	uint64_t to_nid; /* rename(2) */
	const char *to_name;
	const char *title; /* of the call in its reason; NULL: the op's name */
	bool opened;       /* it comes by an open file */
	bool fills_pages;  /* a read for the page cache, not for one read(2) */
	bool in_set;       /* a change set is being applied there: names must not be kept */
	bool noted;        /* the reason of the refusal is noted already */
	struct err_detail
		detail; /* why it is refused, where that says more than the error's text */
};

/* name NULL: it is about the node itself. */
struct fuse_call call_begin(fuse_req_t req, enum op op, uint64_t nid, const char *name);
/* Of a request that libfuse does not know: it may be answered by reply_attr() and reply_err() and
 * their like only. */
struct statx_request;
struct fuse_call call_begin_own(struct fs *fs, enum op op, const struct statx_request *request);
pid_t call_thread(const struct fuse_call *c);
/* To whom the reply is told (fs/tree/told.h). */
static inline struct told_to call_told_to(const struct fuse_call *c)
{
	return (struct told_to){ c->tid, c->uid, c->gid };
}
/* The only way to answer an error, so that every refusal has its reason (fs/requests/refusal.h).
 * ERR_OK too. fsync(2) says EIO for EINVAL. */
void reply_err(struct fuse_call *c, enum err e);
/* ESTALE: the kernel looks the name up once more. */
void reply_again(struct fuse_call *c);
/* The reason of a refusal, for a call that is answered elsewhere or otherwise.  rejected: as in
 * struct refusal; "": nowhere. */
void note_refusal(struct fuse_call *c, enum err e, const char *rejected);
/* Whether the caller may have one more file open; false: the reply is sent. */
bool may_open(struct fuse_call *c);
void reply_attr(struct fuse_call *c, const struct stat *st, double timeout);
/* statx(2), which libfuse does not know (statx.c). */
struct statx_request {
	uint64_t nid, unique;
	pid_t tid;
	uid_t uid;
	gid_t gid;
};
/* Whether the request, of n bytes, is one. */
bool statx_is(const void *request, size_t n, struct statx_request *ret);
/* reply_attr() and reply_err() of statx(2), after it was counted. */
void reply_statx(struct fuse_call *c, const struct stat *st, double timeout);
void reply_statx_errno(struct fuse_call *c, int code);
/* A node with its attributes. */
void reply_node(struct fuse_call *c, uint64_t nid, const struct stat *st, double entry_timeout);
/* The name means nothing, and will until something changes. */
void reply_no_entry(struct fuse_call *c);
void reply_bytes(struct fuse_call *c, const char *p, size_t n);
/* From now on this thread works for the call: base/interrupted.h tells of its client.  NULL: for none, as
 * after call_done(). */
void call_works(const struct fuse_call *c);
/* Counts a call that is answered with this errno, or 0; the caller sends the reply. */
void call_done(struct fuse_call *c, int code);
/* Counts a call whose reply is sent by somebody else. */
void reply_elsewhere(struct fuse_call *c);
/* Success of a close, after the kernel dropped what the stage's commit made wrong. */
void reply_after_commit(struct fuse_call *c, struct stage *s);
/* The same, without the reply, for a request during which the kernel holds the lock of an inode
 * that others come to (fsync, setattr): waiting for the name's directory could wait for somebody
 * who waits for the inode.  The old node is made unusable instead, which waits for nobody; the name
 * follows. */
void drop_stale_locked(struct notifier *notifier, struct stage *s);

static inline struct handle *handle_of(const struct fuse_file_info *fi)
{
	return fi == NULL ? NULL : (struct handle *)(uintptr_t)fi->fh;
}
/* One of a file, which fi leads to from now on; NULL when memory is out. */
struct handle *open_handle(
	const struct fuse_call *c, enum kind kind, uint64_t nid, struct fuse_file_info *fi);
/* Its last close: what is complete is committed, and the kernel told. */
void close_handle(struct fs *fs, struct handle *h);

/* Whether closes of what is being opened need not be told (FOPEN_NOFLUSH): each is one request
 * less, but a lock that it releases stays until the last close. */
bool may_skip_flush(struct locks *locks, const struct fuse_file_info *fi);
/* Releases the fcntl(2) locks of a close: all that the owner has of the file. */
void unlock_closed(struct fs *fs, struct handle *h, uint64_t owner);

/* What a virtual name means. */
struct fuse_entry_param ventry_param(struct fuse_call *c, const struct ventry *entry);
void reply_ventry(struct fuse_call *c, const struct ventry *entry);

/* A reply to readdir that is being filled; a listing_fn. */
struct dir_page {
	const struct fs *fs;
	fuse_req_t req;
	char *bytes;
	size_t len, size;
	bool plus;
	bool in_set;   /* as in struct fuse_call */
	double keep_s; /* how long the kernel may keep names and attributes */
};
bool dir_page_add(
	void *arg, const char *name, uint64_t nid, const struct stat *st, int64_t next_offset);

/* By file. */
void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_forget(fuse_req_t req, fuse_ino_t nid, uint64_t n);
void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
	const char *new_name, unsigned flags);
void op_getattr(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi);
/* Answers the request, of n bytes, if it is a statx; else false. */
bool op_statx(struct fs *fs, const void *request, size_t n);
void op_access(fuse_req_t req, fuse_ino_t nid, int mask);
void op_setattr(
	fuse_req_t req, fuse_ino_t nid, struct stat *st, int to_set, struct fuse_file_info *fi);
void op_open(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi);
void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	struct fuse_file_info *fi);
void op_read(fuse_req_t req, fuse_ino_t nid, size_t size, off_t offset, struct fuse_file_info *fi);
void op_write(fuse_req_t req, fuse_ino_t nid, const char *bytes, size_t size, off_t offset,
	struct fuse_file_info *fi);
void op_flush(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi);
void op_release(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi);
void op_fsync(fuse_req_t req, fuse_ino_t nid, int datasync, struct fuse_file_info *fi);
void op_poll(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi, struct fuse_pollhandle *ph);
void op_lseek(fuse_req_t req, fuse_ino_t nid, off_t offset, int whence, struct fuse_file_info *fi);
void op_fallocate(
	fuse_req_t req, fuse_ino_t nid, int mode, off_t offset, off_t n, struct fuse_file_info *fi);
void op_flock(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi, int operation);
void op_setlk(
	fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi, struct flock *range, int sleep);
void op_getlk(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi, struct flock *range);
void op_opendir(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi);
void op_readdir(
	fuse_req_t req, fuse_ino_t nid, size_t size, off_t offset, struct fuse_file_info *fi);
void op_readdirplus(
	fuse_req_t req, fuse_ino_t nid, size_t size, off_t offset, struct fuse_file_info *fi);
void op_releasedir(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi);
void op_fsyncdir(fuse_req_t req, fuse_ino_t nid, int datasync, struct fuse_file_info *fi);
void op_getxattr(fuse_req_t req, fuse_ino_t nid, const char *name, size_t size);
void op_setxattr(fuse_req_t req, fuse_ino_t nid, const char *name, const char *value, size_t size,
	int flags);
void op_listxattr(fuse_req_t req, fuse_ino_t nid, size_t size);
void op_removexattr(fuse_req_t req, fuse_ino_t nid, const char *name);
void op_statfs(fuse_req_t req, fuse_ino_t nid);
void op_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name);
void op_link(fuse_req_t req, fuse_ino_t nid, fuse_ino_t parent, const char *name);
void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device);

extern const struct fuse_lowlevel_ops fs_ops;

#endif
