/* SPDX-License-Identifier: MIT
 * Streams whose size a thread was told by their name.  Programs such as Apache and sshfs take the size of
 * a name, then open it and read so many bytes.  So the thread's next open shows the moment of the size, if
 * it comes soon and the thread changes nothing in between.  Thread-safe. */
#ifndef FS_TREE_TOLD_H
#define FS_TREE_TOLD_H

#include "fs/core/state.h"

#include <stdint.h>
#include <sys/types.h>

struct vfile;

struct told_to {
	pid_t tid;
	uid_t uid;
	gid_t gid;
};

struct told;
struct told *told_new(void);
/* Closes all that is kept.  Accepts NULL. */
void told_free(struct told *t);

/* Keeps the file that the node showed, instead of an earlier one of the same name.  Takes ownership of it.
 * until_us: as told_take() set it; 0: for two seconds. */
void told_keep(struct told *t, uint64_t nid, struct told_to to, struct vfile *f, uint64_t until_us);
/* Returns the node that the thread was told of, for a look-up of a node without moment; 0: none. */
uint64_t told_node(struct told *t, uint64_t base, struct told_to to);
/* Returns the file of the node, which the caller then owns; NULL: there is none for this thread. */
struct vfile *told_take(struct told *t, uint64_t nid, struct told_to to, uint64_t *ret_until_us);
/* The thread changes something, and its next open must show that. */
void told_forget(struct told *t, pid_t tid);
/* Closes those that are too old; all: also the others.  Returns whether it closed one.  Kept files hold
 * views, so a commit calls this. */
bool told_close(struct told *t, bool all);

#endif
