/* SPDX-License-Identifier: MIT
 * The tables of fs/tree/locks.c: locked files, waits, the ranges of each user.  They decide whether a wait may
 * begin, and which can end.  Everything here is called with the lock held, and answers no request. */
#ifndef FS_TREE_LOCK_TABLE_H
#define FS_TREE_LOCK_TABLE_H

#include "base/lock.h"
#include "fs/tree/locks.h"

/* Of the table of files; a power of two. */
#define LOCK_BUCKETS 1024

/* Of a file that somebody has locked or waits for.  flock(2) has one of its own. */
struct locked {
	struct ranges held; /* first */
	struct locked *next;
	uint64_t id;
	bool flock;
	struct wait *waits; /* oldest first */
};

struct wait {
	struct wait *next, **at;         /* of the file; or of those that are to be answered */
	struct wait *all_next, **all_at; /* of those that may take part in a circle */
	struct wait *stack;              /* of the search for one */
	uint64_t seen;                   /* by which search */
	struct locks *locks;
	struct locked *file;
	struct range wanted;
	bool queued, interrupted; /* guarded by the lock */
	int code;                 /* the reply */
	struct fuse_req *req;
};

struct locks {
	struct mutex lock;
	/* All below is guarded by it. */
	struct locked *files[LOCK_BUCKETS];
	struct range_user *users;
	struct wait *waits; /* for fcntl(2) */
	uint64_t searches;
	size_t ranges, max_ranges; /* of fcntl(2), with the waits for it */
	atomic_bool used;          /* not guarded */
};

/* Where the file is, or would be. */
struct locked **lock_table_place(struct locks *l, uint64_t id, bool flock);
/* Makes it if it is not there.  NULL: memory is out. */
struct locked *lock_table_file(struct locks *l, uint64_t id, bool flock);
/* Frees the file, which may be NULL, if nobody locks it or waits for it. */
void lock_table_tidy(struct locks *l, struct locked *f);
/* Valid until the next call, and as long as the user holds anything.  NULL: memory is out. */
struct range_user *lock_table_user(struct locks *l, const struct lock_ask *ask);
/* 0; EAGAIN: it has to wait; ENOLCK. */
int lock_table_set(struct locks *l, struct locked *f, const struct range *wanted);
/* Has w wait for its wanted range of the file: EAGAIN.  Or ENOLCK, EDEADLK: it does not. */
int lock_table_wait(struct locks *l, struct locked *f, struct wait *w);
void lock_table_unqueue(struct wait *w);
/* After something was released: moves those that need not wait any more to *ready. */
void lock_table_grant(struct locks *l, struct locked *f, struct wait **ready);

#endif
