/* SPDX-License-Identifier: MIT
 * Tasks: requests for virtual nodes (fs/core/virtual.h).  The method runs in its pool, and the reply
 * is sent from there.  A request whose method is not inline belongs to the workers. */
#ifndef FS_REQUESTS_TASK_H
#define FS_REQUESTS_TASK_H

#include "base/workers.h"
#include "fs/requests/ops.h"
#include "fs/tree/requester.h"

struct task {
	struct job job; /* first; next: also of those that wait for the handle */
	struct caller vcall;
	struct requester requester;
	struct fuse_call call;
	void (*run)(struct task *t);
	enum vpool pool;
	uint64_t slice_end_us; /* 0: is not broken off for others */
	bool again;            /* it was, and goes on later */
	struct waiter waiter;  /* while it is parked, it belongs to the waiters */
	uint64_t seen;         /* as in struct vwait */
	bool parks, parked;

	uint64_t nid;
	uint64_t onto; /* the node that a rename(2) replaces */
	struct fuse_file_info fi;
	struct handle *handle; /* one reference, and its turn while it runs */
	uint64_t offset;
	size_t size;        /* to read; of bytes */
	uint64_t length;    /* of the range of fallocate(2), whose mode is fi.flags */
	bool plus;          /* readdirplus; lseek(2) to a hole */
	bool fills_pages;   /* a read for the page cache: see read_file() */
	struct buf out;     /* what was read */
	struct vfile *file; /* of a node that nobody has open, while its size is looked for */
	char bytes[];       /* the names, each with its NUL, or what is written */
};

/* Each makes a task, which run() answers.  NULL, and the reply is sent: memory is out. */
struct task *task_new(const struct fuse_call *c, void (*run)(struct task *t), uint64_t nid,
	const struct fuse_file_info *fi);
/* By a name in a directory; also by the second name of a rename, c->to_name. */
struct task *task_named(
	const struct fuse_call *c, void (*run)(struct task *t), uint64_t dir, const char *name);
/* By an attribute's name; its value, t->size bytes, is behind the NUL of the name. */
struct task *task_with_value(const struct fuse_call *c, void (*run)(struct task *t), uint64_t nid,
	const char *name, struct span value);
/* By an open file or directory, with bytes to write.  Requests by one handle run one at a time. */
struct task *task_on_handle(const struct fuse_call *c, void (*run)(struct task *t),
	struct handle *h, struct span bytes);

/* Runs the task, now or in its pool.  The pools take tasks until the request loop is over. */
void task_dispatch(struct task *t, enum vpool pool);
/* Does the same for methods that ask who sees what; modes hold where the kernel checks them. */
void task_dispatch_viewed(struct task *t, enum vpool pool);
/* Returns whether the client gave up, or the mount is going. */
bool task_given_up(const struct task *t);
/* From run(): runs the task again after this wait, without a thread meanwhile. */
void task_park(struct task *t, const struct vwait *wait);
/* Begins the time after which a task gives way to others of its pool (vfile_ops.resumes). */
void task_begin_slice(struct task *t);

#endif
