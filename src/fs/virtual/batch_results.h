/* SPDX-License-Identifier: MIT
 * The last result of each .batch and .batch-check, for a client that opens one to read it.  In
 * memory: 256 of them and 8 MiB at most, the oldest go first.  Thread-safe. */
#ifndef FS_VIRTUAL_BATCH_RESULTS_H
#define FS_VIRTUAL_BATCH_RESULTS_H

#include "base/buf.h"

#include <stdint.h>

struct batch_results;
struct batch_results *batch_results_new(void); /* NULL when memory is out */
void batch_results_free(struct batch_results *r);

/* Of this node, in place of the last one.  Where memory is out the node has none. */
void batch_results_put(struct batch_results *r, uint64_t nid, struct span result);
/* Appended to out; nothing where there is none (any more). */
void batch_results_get(struct batch_results *r, uint64_t nid, struct buf *out);

#endif
