/* SPDX-License-Identifier: MIT
 * flock(2) by row.  The kernel would lock per node, and a row has another node after every
 * commit: two processes could hold "the" lock of one row.  Ordinary files keep their node,
 * but take the same way.  (fcntl locks stay with the kernel: on rows they hold within one
 * version.) */
#ifndef FS_LOCKS_H
#define FS_LOCKS_H

#include "fs/state.h"

#include <stdint.h>

struct fuse_req;

struct locks;
struct locks *locks_new(void);
void locks_free(struct locks *l);

/* The number of what is locked, and that by which others may have locked it before. */
struct lock_id {
	uint64_t now, before;
};
/* Asked so that no locks_move() comes between: may read the store, and takes no other lock. */
typedef struct lock_id (*lock_id_fn)(const void *arg);
/* operation as in flock(2).  Answers req: at once, or when the lock was got, or with EINTR
 * when the kernel gave the request up.  owner: the open file description. */
void locks_flock(struct locks *l, struct fuse_req *req, lock_id_fn id, const void *arg,
	uint64_t owner, int operation);
/* Another number stands for what was locked: an empty file became a row. */
void locks_move(struct locks *l, uint64_t from, uint64_t to);
/* Lets go of whatever the owner holds. */
void locks_release(struct locks *l, uint64_t owner);

#endif
