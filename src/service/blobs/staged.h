/* SPDX-License-Identifier: MIT
 * Blocks below a blob.  The key of a block's extent has its id, the version of its Put Block and its
 * size, so a commit moves no blocks: its list names extents.
 *
 * An extent that the list does not name is a staged block, unless it is obsolete: put before the
 * blob's content was made, more than a week ago, or before another one with its id. */
#ifndef SERVICE_BLOBS_STAGED_H
#define SERVICE_BLOBS_STAGED_H

#include "service/blobs/blob_find.h"
#include "service/blobs/block_list.h"

/* Behind the keys of all other extents of a blob (blob_change.c). */
#define STAGED_PREFIX "y"
#define STAGED_KEY_CHARS (1 + 2 * BLOCK_ID_BYTES + 1 + 16 + 1 + 16)

struct staged {
	struct block_id id;
	int64_t version;
	uint64_t size, extent;
};

/* Writes the key of a block; `extent` does not count. */
struct span staged_key(const struct staged *b, char out[STAGED_KEY_CHARS + 1]);
/* Reads a key; sets all but `extent`. */
bool staged_key_read(struct span key, struct staged *ret);
/* Finds the first block below a blob.  ERR_NOT_FOUND. */
enum err staged_first(struct service *s, uint64_t blob, struct staged *ret);

/* All blocks of a blob; staged ones in the order of their ids. */
struct blob_blocks {
	struct block *committed;
	struct staged *staged;
	size_t ncommitted, nstaged;
};
/* Loads them; call blob_blocks_fini() also after an error.  ERR_GONE, ERR_CORRUPT, ERR_NO_MEMORY. */
enum err blob_blocks_load(struct service *s, const struct blob_info *b, struct blob_blocks *ret);
void blob_blocks_fini(struct blob_blocks *b);

/* Removes the obsolete blocks of a blob.  Each step takes back the record that it has read, so a
 * commit at the same time loses nothing.  An error only leaves work to the next call. */
void staged_sweep(struct service *s, enum origin origin, uint64_t container_id, struct span name);

#endif
