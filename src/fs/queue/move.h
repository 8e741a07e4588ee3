/* SPDX-License-Identifier: MIT
 * What a name in a queue leads to, and what a rename and a removal of it do.  A message that
 * moves to .taken is taken; one that moves back becomes visible. */
#ifndef FS_QUEUE_MOVE_H
#define FS_QUEUE_MOVE_H

#include "fs/core/virtual.h"
#include "fs/queue/message.h"
#include "fs/queue/names.h"

struct queue_found {
	uint64_t nid;
	uint64_t number;        /* of a name that a user chose; else 0 */
	struct queue_name name; /* if there is a number */
	bool exists;            /* else it is not put yet */
	struct message message; /* if it exists; owned */
	uint32_t taken;         /* the take that the name is about */
};

/* Finds what the name in one of the three directories of a queue leads to.  On ERR_OK call
 * queue_found_fini().  ERR_NOT_FOUND: also if the message is in another of them. */
enum err queue_name_find(struct fs *fs, uint64_t dir, struct span name, struct queue_found *ret);
void queue_found_fini(struct queue_found *f);

/* vnode_ops.unlink: deletes the message.  ERR_CONDITION_NOT_MET: another took it. */
enum err queue_name_remove(
	struct fs *fs, uint64_t dir, struct span name, struct err_detail *detail);
/* vnode_ops.rename. */
enum err queue_name_move(struct fs *fs, const struct vmove *move, struct err_detail *detail);

#endif
