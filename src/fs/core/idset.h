/* SPDX-License-Identifier: MIT
 * Small tables keyed by a 64-bit id: a set, and a counter per id.  Thread-safe. */
#ifndef FS_CORE_IDSET_H
#define FS_CORE_IDSET_H

#include <stdbool.h>
#include <stdint.h>

struct idset;
struct idset *idset_new(void);
void idset_free(struct idset *s);
/* Adds delta to the id's count (an absent id counts 0; 0 removes it); returns the new one.
 * Running out of memory leaves the table as it was and answers the old count. */
int64_t idset_add(struct idset *s, uint64_t id, int64_t delta);
int64_t idset_count(struct idset *s, uint64_t id);
/* Makes the count at least 1; cheap when it is already. */
void idset_mark(struct idset *s, uint64_t id);

#endif
