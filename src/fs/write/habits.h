/* SPDX-License-Identifier: MIT
 * What threads use to do.  A thread that replaced committed rows in its last opens gets the node of
 * a staged write at its first look-up of a row (fs/requests/lookup.c).  Other threads are told
 * ESTALE and walk again.  This is only a guess: a thread that does something else with the node is
 * served as if it were the committed row's, and gets no such node again until it has replaced rows
 * anew. */
#ifndef FS_WRITE_HABITS_H
#define FS_WRITE_HABITS_H

#include <stdbool.h>
#include <sys/types.h>

struct habits;
struct habits *habits_new(void);
void habits_free(struct habits *h); /* NULL is fine */

/* The thread opened a row that is there, to write. */
void habits_overwrote(struct habits *h, pid_t tid);
/* It did something else, or not what was guessed. */
void habits_forget(struct habits *h, pid_t tid);
/* The same where it changes what names lead to.  True: a look-up before may have been guessed
 * about; then the kernel holds a stage's node there, and what it knows of the committed one is left
 * as it was.  Also true for some other threads, once each. */
bool habits_forget_guess(struct habits *h, pid_t tid);
/* Whether it may be guessed that what it looks up now will be overwritten. */
bool habits_guess(struct habits *h, pid_t tid);

#endif
