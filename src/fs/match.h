/* SPDX-License-Identifier: MIT
 * user.rowfs.if_match: the ETag that a row must have for its next change through the mount.
 * In memory, bounded, used once.  Thread-safe. */
#ifndef FS_MATCH_H
#define FS_MATCH_H

#include <stdbool.h>
#include <stdint.h>

struct matches;
struct matches *matches_new(void);
void matches_free(struct matches *m);
void matches_set(struct matches *m, uint64_t row_id, int64_t version);
void matches_drop(struct matches *m, uint64_t row_id);
/* Without using it up; -1 if there is none. */
int64_t matches_peek(struct matches *m, uint64_t row_id);
/* Uses it up; -1 if there is none: any version will do. */
int64_t matches_take(struct matches *m, uint64_t row_id);

#endif
