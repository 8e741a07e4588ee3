/* SPDX-License-Identifier: MIT
 * Pending retries: threads that were told ESTALE and come back at once.
 *
 * open(2) for writing finds a committed node, which must not be written.  The reply ESTALE makes
 * the kernel walk the path once more, in the same thread, with fresh look-ups.  A retry remembers the
 * thread, and its look-up of the row's name is given a stage.  Reading is told ESTALE where the node
 * is an old version; the second try is served what its look-up found, even if that was replaced
 * since.  A link in /proc/self/fd is opened without look-ups, so such a thread is told ESTALE twice. */
#ifndef FS_WRITE_RETRIES_H
#define FS_WRITE_RETRIES_H

#include "fs/write/stages.h"

struct retries;
struct retries *retries_new(void);
void retries_free(struct fs *fs, struct retries *n);
enum retry_state {
	RETRY_NONE,   /* first try: ESTALE was noted */
	RETRY_SECOND, /* this thread was told ESTALE a moment ago, and walked again */
	RETRY_LINK,   /* the same, but it looked no row up: it comes by a link in /proc/self/fd */
};
enum retry_what {
	RETRY_STAT,
	RETRY_READ,
	RETRY_WRITE,
};
/* The thread's request for nid (an open, or with RETRY_STAT a stat) cannot be served as it is.  item: the
 * item of the node; NULL: not known.  A retry is about one row's name, which the next
 * look-up tells, and holds for a short time only. */
enum retry_state retries_refuse(struct fs *fs, struct retries *n, pid_t tid, uint64_t nid,
	const struct item *item, enum retry_what what);
/* The thread's look-up of this name found nothing: if the next one does not find it, or is of another
 * name, its walk is over, and its next open a first try. */
void retries_missed(struct retries *n, pid_t tid, uint64_t dir_id, struct span name);
/* The thread's look-up of this name gave it this node, which it may be about to ask for: its walk ends
 * there, whatever name that had before. */
void retries_found(struct retries *n, pid_t tid, uint64_t dir_id, struct span name, uint64_t nid);
/* Whether this thread is looking up this name in order to write; *ret_stage is the stage
 * that it was given for it before (with a reference), or NULL.  A retry without a name is for
 * this one from now on. */
bool retries_wants_stage(struct fs *fs, struct retries *n, pid_t tid, uint64_t dir_id,
	struct span name, struct stage **ret_stage);
/* Nothing was refused, but the thread may come back to write (fs/write/speculation.h): its look-up of this
 * name is given a stage.  False: the thread has a retry.  A speculative retry, which it
 * did not follow, is dropped. */
bool retries_speculate(
	struct fs *fs, struct retries *n, pid_t tid, uint64_t dir_id, struct span name);
/* Returns true if the thread was given this stage speculatively. */
bool retries_is_speculative(struct retries *n, pid_t tid, const struct stage *s);
/* Takes over one reference of the stage. */
void retries_set_stage(struct fs *fs, struct retries *n, pid_t tid, struct stage *s);
void retries_clear(struct fs *fs, struct retries *n, pid_t tid);
/* Returns whether the thread's look-up was given this very stage. */
bool retries_expects(struct retries *n, pid_t tid, const struct stage *s);

#endif
