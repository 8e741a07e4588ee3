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
void matches_set(struct matches *m, uint64_t row_id, int64_t version);
void matches_drop(struct matches *m, uint64_t row_id);
/* -1 if there is none: any version will do. */
int64_t matches_get(struct matches *m, uint64_t row_id);

#endif
