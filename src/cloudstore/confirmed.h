/* SPDX-License-Identifier: MIT
 * Which parts of the shadow the service confirmed lately: ranges of keys in a directory, each with the
 * time when the request for it began.  Bounded memory: the oldest ranges are forgotten first. */
#ifndef CLOUDSTORE_CONFIRMED_H
#define CLOUDSTORE_CONFIRMED_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

struct confirmed;

/* max_age_us 0: nothing is remembered.  NULL: memory is out. */
struct confirmed *confirmed_new(uint64_t max_age_us);
void confirmed_free(struct confirmed *c); /* NULL is fine */

/* Returns whether ranges are remembered: the maximum age is not 0.  Takes no lock. */
bool confirmed_keeps(const struct confirmed *c);
/* Notes that the children of `dir` from one key to another, both among them, are as the shadow has them.
 * to_end: all from `from` on, whatever `to` is.  Copies the keys.  asked_us: clock_mono_us() before the request. */
void confirmed_add(struct confirmed *c, uint64_t dir, struct span from, struct span to, bool to_end,
	uint64_t asked_us);
/* Forgets all ranges of a directory. */
void confirmed_forget(struct confirmed *c, uint64_t dir);
/* Returns whether the child with this key, there or not, is confirmed.  *ret_to (may be NULL) gets the
 * last key of the range; *ret_end: the range goes on to the end instead. */
bool confirmed_covers(
	struct confirmed *c, uint64_t dir, struct span key, struct buf *ret_to, bool *ret_end);

#endif
