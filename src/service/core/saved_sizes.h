/* SPDX-License-Identifier: MIT
 * Sizes of .rows.ndjson over a clean close.  The mount writes them into the store's note when it ends, and
 * reads them at its next start, unless something was changed in between. */
#ifndef SERVICE_CORE_SAVED_SIZES_H
#define SERVICE_CORE_SAVED_SIZES_H

#include "service/core/service.h"

#include <stddef.h>
#include <stdint.h>

#define SAVED_SIZES_MAX 64

struct saved_size {
	uint64_t table_id;
	uint64_t dir_id; /* the table, or one of its partitions */
	uint64_t bytes;  /* of the dir's .rows.ndjson */
};

/* Returns the version of which everything is true that the subscriber knows; 0 while a change set is under
 * way.  The same before and after an action: nothing was changed meanwhile. */
int64_t saved_sizes_version(struct service *s);
/* Sets out[] and returns their number; 0 if none is kept, or something was changed since. */
size_t saved_sizes_read(struct service *s, struct saved_size out[SAVED_SIZES_MAX]);
/* Keeps n sizes that are true of this version, in place of others. */
void saved_sizes_write(
	struct service *s, int64_t version, const struct saved_size *sizes, size_t n);

#endif
