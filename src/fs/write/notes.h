/* SPDX-License-Identifier: MIT
 * Notes about threads that were told ESTALE and come back at once.
 *
 * open(2) for writing finds a committed node, which must not be written.  The answer ESTALE makes
 * the kernel walk the path once more, in the same thread, with fresh look-ups.  A note remembers the
 * thread, and its look-up of the row's name is given a stage.  Reading is told ESTALE where the node
 * is an old version; the second try is served what its look-up found, even if that was replaced
 * since.  A link in /proc/self/fd is opened without look-ups, so such a thread is told ESTALE twice. */
#ifndef FS_WRITE_NOTES_H
#define FS_WRITE_NOTES_H

#include "fs/write/stages.h"

struct notes;
struct notes *notes_new(void);
void notes_free(struct fs *fs, struct notes *n);
enum note_state {
	NOTE_NONE,   /* first try: ESTALE was noted */
	NOTE_SECOND, /* this thread was told ESTALE a moment ago, and walked again */
	NOTE_LINK,   /* the same, but it looked no row up: it comes by a link in /proc/self/fd */
};
enum note_what {
	NOTE_STAT,
	NOTE_READ,
	NOTE_WRITE,
};
/* What a thread wants of nid (an open, but for NOTE_STAT) cannot be served as it is.  item: what the
 * node stands for, as far as it is known (NULL: not).  A note is about one row's name, which the next
 * look-up tells, and holds for a short time only. */
enum note_state notes_refuse(struct fs *fs, struct notes *n, pid_t tid, uint64_t nid,
	const struct item *item, enum note_what what);
/* The thread's look-up of this name found nothing: if the next one does not find it, or is of another
 * name, its walk is over, and its next open a first try. */
void notes_missed(struct notes *n, pid_t tid, uint64_t dir_id, struct span name);
/* The thread's look-up of this name gave it this node, which it may be about to ask for: its walk ends
 * there, whatever name that had before. */
void notes_found(struct notes *n, pid_t tid, uint64_t dir_id, struct span name, uint64_t nid);
/* Whether this thread is looking up this name in order to write; *ret_stage is the stage
 * that it was given for it before (with a reference), or NULL.  A note without a name is for
 * this one from now on. */
bool notes_wants_stage(struct fs *fs, struct notes *n, pid_t tid, uint64_t dir_id, struct span name,
	struct stage **ret_stage);
/* Nothing was refused, but the thread may come back to write (fs/write/habits.h): its look-up of this
 * name is given a stage.  False: not now, it has a note; if that was a guess as well, which it did
 * not follow, that has gone. */
bool notes_guess(struct fs *fs, struct notes *n, pid_t tid, uint64_t dir_id, struct span name);
/* Whether the thread was given this stage by a guess. */
bool notes_guessed(struct notes *n, pid_t tid, const struct stage *s);
/* Takes over one reference of the stage. */
void notes_set_stage(struct fs *fs, struct notes *n, pid_t tid, struct stage *s);
void notes_clear(struct fs *fs, struct notes *n, pid_t tid);
/* Returns whether the thread's look-up was given this very stage. */
bool notes_expects(struct notes *n, pid_t tid, const struct stage *s);

#endif
