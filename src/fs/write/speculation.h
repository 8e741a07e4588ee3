/* SPDX-License-Identifier: MIT
 * Speculative lookups.  A thread that replaced committed rows in its last opens gets the node of a
 * staged write at its first lookup of a row (fs/requests/lookup.c).  Other threads are told ESTALE
 * and walk again.  A thread that does something else with the node is served as if it were the
 * committed row's.  It gets no such node again until it has replaced rows anew.  All functions are
 * thread-safe. */
#ifndef FS_WRITE_SPECULATION_H
#define FS_WRITE_SPECULATION_H

#include <stdbool.h>
#include <sys/types.h>

struct speculation;
struct speculation *speculation_new(void);
void speculation_free(struct speculation *h); /* NULL is fine */

/* The thread opened a row that exists, to write. */
void speculation_overwrote(struct speculation *h, pid_t tid);
/* The thread did something else: its next lookups are not speculative. */
void speculation_stop(struct speculation *h, pid_t tid);
/* The same, for a thread that changes what names lead to.  Returns true if an earlier lookup of it may
 * have been speculative, also for some other threads, once each.  Then the kernel holds a stage's node
 * there, and what it knows of the committed one is left as it was. */
bool speculation_take(struct speculation *h, pid_t tid);
/* Returns true if the thread's next lookup is speculative. */
bool speculation_is_due(struct speculation *h, pid_t tid);

#endif
