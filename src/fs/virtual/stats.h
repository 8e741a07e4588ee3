/* SPDX-License-Identifier: MIT
 * What the serving process tells of itself: .rowfs/stats.json, for people and jq, and
 * .rowfs/metrics, the same in Prometheus' text format. */
#ifndef FS_VIRTUAL_STATS_H
#define FS_VIRTUAL_STATS_H

#include "base/buf.h"
#include "fs/core/state.h"

#include <stdint.h>

/* Held views that are told of one by one, oldest first; all are counted. */
#define STATS_VIEWS 64

/* So that the mount's operations are there to be read.  Once, before the first request. */
void stats_name_operations(struct service *service);
/* Counts a request that was answered with this errno; 0: none. */
void stats_count(struct service *service, enum op op, uint64_t us, int code);

/* How many files are in STORE_REJECTED or STORE_TRASH. */
uint64_t stats_files(struct store *store, uint64_t folder);

/* One JSON object. */
void stats_write_json(struct fs *fs, struct buf *out);
/* Text format 0.0.4. */
void stats_write_metrics(struct fs *fs, struct buf *out);

#endif
