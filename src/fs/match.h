/* SPDX-License-Identifier: MIT
 * user.rowfs.if_match: the ETag that a row must have for its next change through the mount.
 * It holds until a change met it: one that is refused is tried again by the kernel itself
 * (ESTALE makes it walk the path once more), so being asked must not use it up.  In memory,
 * bounded.  Thread-safe. */
#ifndef FS_MATCH_H
#define FS_MATCH_H

#include <stdbool.h>
#include <stdint.h>

struct matches;
struct matches *matches_new(void);
void matches_free(struct matches *m);
/* Over the row's last one.  False: there are 4,096, and no room for another.  At the first refusal,
 * at the first one after matches_many_gone(), and at every 64th from then on, those of rows that
 * have gone unnoticed are dropped; gone() is asked about each of them. */
bool matches_set(struct matches *m, uint64_t row_id, int64_t version,
	bool (*gone)(void *arg, uint64_t row_id), void *arg);
/* The row has gone, or its condition is met or taken back. */
void matches_drop(struct matches *m, uint64_t row_id);
/* A table went with all its rows. */
void matches_many_gone(struct matches *m);
/* -1 if there is none: any version will do. */
int64_t matches_get(struct matches *m, uint64_t row_id);

#endif
