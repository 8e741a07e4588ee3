/* SPDX-License-Identifier: MIT
 * The table of all stages, by name and by node.
 *
 * A writer's stage has a node that no other look-up is given.  A thread that overwrites one row
 * after the other is given a stage at its look-up (fs/write/speculation.h). */
#ifndef FS_WRITE_STAGES_H
#define FS_WRITE_STAGES_H

#include "fs/write/stage.h"

struct stages;
struct stages *stages_new(void);
void stages_free(struct fs *fs, struct stages *t); /* the handles are gone already */

/* Gives the stage a node and one reference.  Without references it goes, whatever the kernel
 * still remembers: its name has no lifetime there, so every use looks the name up again.
 * tid: the thread that is given it speculatively (fs/write/speculation.h), or 0. */
void stages_add(struct stages *t, struct stage *s, pid_t tid);
/* Somebody holds a node of a stage that has gone: it is not given to another one. */
void stages_held(struct stages *t);
/* One more reference; NULL if there is none of this node. */
struct stage *stages_get(struct stages *t, uint64_t nid);
void stages_unref(struct fs *fs, struct stages *t, struct stage *s);
size_t stages_count(struct stages *t); /* that are open */

/* Another node is about to be given out for the name (NULL: for any name) in the directory:
 * call before the store is read.  New names become visible. */
void stages_expose(struct fs *fs, struct stages *t, uint64_t dir_id, const char *name);

/* Mode, owner or times of a row were set: its open staged writes show them, too. */
void stages_attributes_set(struct fs *fs, struct stages *t, uint64_t id);

#endif
