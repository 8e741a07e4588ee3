/* SPDX-License-Identifier: MIT
 * The parts of a cycle of operations on blobs, for its two files. */
#ifndef FAULT_BLOB_CYCLE_PARTS_H
#define FAULT_BLOB_CYCLE_PARTS_H

#include "base/span.h"

#define LEASE_ID "00000000-0000-4000-8000-000000000001"
#define DISK_BYTES 65536u
#define WRITTEN_AT 1536u /* pages 3 to 18: parts of three pieces */
#define WRITTEN 8192u
#define CLEARED_AT 4096u
#define CLEARED 1024u
#define MOST 80000u /* bytes of a blob */

/* In the order of a cycle. */
enum step {
	CREATE,
	DELETE_BEFORE,
	PUT_SMALL,
	STAGE_ONE,
	STAGE_TWO,
	COMMIT,
	MAKE_LOG,
	APPEND,
	APPEND_MORE,
	MAKE_DISK,
	WRITE_PAGES,
	CLEAR_PAGES,
	SNAPSHOT_DISK,
	SNAPSHOT_LIST,
	COPY,
	LEASE,
	METADATA,
	PUT_LARGE,
	MOVE,
	DELETE,
};

static inline enum step step_of(unsigned number)
{
	return (enum step)((number - 1) % BLOB_STEPS);
}
static inline unsigned cycle_of(unsigned number)
{
	return (number - 1) / BLOB_STEPS;
}
/* The operation of this step in the cycle of `number`. */
static inline unsigned at_step(unsigned number, enum step step)
{
	return cycle_of(number) * BLOB_STEPS + (unsigned)step + 1;
}

/* Writes the bytes of an operation to out; they are up to MOST. */
struct span blob_cycle_bytes(unsigned number, char *out);

#endif
