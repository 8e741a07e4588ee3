/* SPDX-License-Identifier: MIT
 * flock(2) and fcntl(2) locks by row.  The kernel would lock per node, and a row has another node
 * after every commit: two processes could hold "the" lock of one row.  Ordinary files keep their
 * node, but take the same way.  The two kinds do not see each other, as on every local file system.
 * No thread waits for a lock: a request that has to wait is answered later. */
#ifndef FS_TREE_LOCKS_H
#define FS_TREE_LOCKS_H

#include "fs/tree/ranges.h"

#include <stdatomic.h>

struct flock;
struct fuse_req;

struct locks;
/* max_ranges: how many ranges fcntl(2) can hold, requests that wait included.  A user can have a
 * quarter of them, all users together three quarters; the owner of the mount and root can have all. */
struct locks *locks_new(size_t max_ranges);
/* Answers what still waits with EINTR. */
void locks_free(struct locks *l);

struct lock_ask {
	uint64_t id; /* of what is locked */
	/* All that was locked through one open file description; outlives its ranges. */
	struct range **via;
	uint64_t owner; /* the kernel's: a process for fcntl(2), else the open file description */
	uid_t uid;
	bool first; /* the owner of the mount, or root */
	/* Told before ENOLCK is answered; NULL is fine. */
	void (*refused)(void *call);
	void *call;
};

/* operation as in flock(2).  Answers req: at once, or when the lock was got, or with EINTR when the
 * kernel gave the request up.  ENOLCK: memory is out. */
void locks_flock(struct locks *l, struct fuse_req *req, const struct lock_ask *ask, int operation);
/* F_SETLK, F_SETLKW (waits).  Answers req as locks_flock() does.  EDEADLK: the wait would close a circle of
 * owners.  ENOLCK: memory is out, or the limit is reached. */
void locks_set(struct locks *l, struct fuse_req *req, const struct lock_ask *ask,
	const struct flock *range, bool waits);
/* F_GETLK.  Answers req. */
void locks_get(struct locks *l, struct fuse_req *req, const struct lock_ask *ask,
	const struct flock *range);
/* Whether fcntl(2) was ever used for a lock here. */
bool locks_used(const struct locks *l);
/* Whether fcntl(2) holds any range. */
bool locks_any(struct locks *l);
/* close(2) by the owner: releases all its fcntl(2) locks of the file. */
void locks_close(struct locks *l, const struct lock_ask *ask);
/* The last close of an open file description: releases whatever was locked through it. */
void locks_release(struct locks *l, struct range **via);

#endif
