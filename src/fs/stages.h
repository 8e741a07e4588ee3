/* SPDX-License-Identifier: MIT
 * The table of all stages, and the notes about threads that will come back for one.
 *
 * open(2) for writing finds a committed node, which must not be written.  The answer
 * ESTALE makes the kernel walk the path once more, with fresh lookups, in the same thread;
 * a note remembers the thread, and its lookup of a row's name is given a private node.  If
 * the second try would fail as well (a link in /proc/self/fd is opened without lookups; the
 * row was replaced in between), the handle gets a stage without a node: direct I/O. */
#ifndef FS_STAGES_H
#define FS_STAGES_H

#include "fs/stage.h"

struct stages;
struct stages *stages_new(void);
void stages_free(struct fs *fs, struct stages *t); /* the handles are gone already */

/* Gives the stage a node and one reference.  Without references it goes, whatever the kernel
 * still remembers: its name has no lifetime there, so every use looks the name up again. */
void stages_add(struct stages *t, struct stage *s);
/* One more reference; NULL if there is none of this node. */
struct stage *stages_get(struct stages *t, uint64_t nid);
void stages_unref(struct fs *fs, struct stages *t, struct stage *s);
size_t stages_count(struct stages *t);

/* Another node is about to be given out for the name (NULL: for any name) in the directory:
 * call before the store is read.  Drafts become visible. */
void stages_expose(struct fs *fs, struct stages *t, uint64_t dir_id, const char *name);

struct notes;
struct notes *notes_new(void);
void notes_free(struct fs *fs, struct notes *n);
enum note_state {
	NOTE_NONE,   /* first try: ESTALE was noted */
	NOTE_SECOND, /* this thread was told ESTALE a moment ago */
};
/* A thread's open of nid cannot be served as it is.  item: what the node stands for, as far
 * as it is known (NULL: not); a note holds for one name and a short time only. */
enum note_state notes_refuse(struct fs *fs, struct notes *n, pid_t tid, uint64_t nid,
	const struct item *item, bool write);
/* Whether this thread is looking up this name in order to write; *ret_stage is the stage
 * that it was given for it before (with a reference), or NULL. */
bool notes_wants_stage(struct fs *fs, struct notes *n, pid_t tid, uint64_t dir_id, struct span name,
	struct stage **ret_stage);
/* The stage that the thread was given, if it is for the row that item is (with a
 * reference); else NULL. */
struct stage *notes_given(struct fs *fs, struct notes *n, pid_t tid, const struct item *item);
/* Takes over one reference of the stage. */
void notes_set_stage(struct fs *fs, struct notes *n, pid_t tid, struct stage *s);
void notes_clear(struct fs *fs, struct notes *n, pid_t tid);
/* Whether the thread was told to come back for this very stage, or this very node. */
bool notes_expects(struct notes *n, pid_t tid, const struct stage *s, uint64_t nid);

#endif
