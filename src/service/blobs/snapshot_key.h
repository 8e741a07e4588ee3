/* SPDX-License-Identifier: MIT
 * Snapshots of blobs.  A snapshot is an item beside its blob: its key is the name of the blob, the byte 1,
 * which no name has, and its time.  So a container lists a blob and its snapshots side by side. */
#ifndef SERVICE_BLOBS_SNAPSHOT_KEY_H
#define SERVICE_BLOBS_SNAPSHOT_KEY_H

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define SNAPSHOT_MARK '\x01'
#define SNAPSHOT_TIME_CHARS 28

/* Returns whether a text has the form of a snapshot's time: 2019-08-14T03:43:53.2866199Z. */
bool snapshot_time_check(struct span time);
/* Writes the time of a snapshot that was made at a tick. */
struct span snapshot_time(int64_t ticks, char out[SNAPSHOT_TIME_CHARS + 1]);

/* Returns whether a key is that of a snapshot. */
bool snapshot_key_is(struct span key);
/* Splits a key into the name of the blob and the time; the time is "" for the blob itself. */
void snapshot_key_split(struct span key, struct span *ret_name, struct span *ret_time);
/* Writes a key to out, which has room for both and a byte; time "": where all snapshots of the blob
 * begin. */
struct span snapshot_key(struct span name, struct span time, char *out);
#define SNAPSHOT_KEY_EXTRA ((size_t)SNAPSHOT_TIME_CHARS + 1)

#endif
