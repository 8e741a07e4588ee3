/* SPDX-License-Identifier: MIT
 * Recent row contents by node: what open handles pinned, what was replaced or removed a
 * moment ago (an open(2) that looked the name up before must still find it), and what was
 * read last.  Contents are immutable, so nothing here is ever stale.  Bounded; pinned ones
 * stay.  Thread-safe. */
#ifndef FS_BLOB_H
#define FS_BLOB_H

#include "base/err.h"
#include "store/store.h"

struct blob {
	uint64_t nid;
	struct item item; /* with body; attributes as they were when it was put here */
};

struct blobs;
struct blobs *blobs_new(size_t max_bytes, size_t max_count);
void blobs_free(struct blobs *b);

/* The content of this node, pinned; NULL if it is not here. */
const struct blob *blobs_pin(struct blobs *b, uint64_t nid);
/* The same, waiting up to timeout_ms for a change that is being told right now to put it
 * here. */
const struct blob *blobs_pin_soon(struct blobs *b, uint64_t nid, unsigned timeout_ms);
/* Takes over the item (which is zeroed) and pins it; what is there already stays. */
enum err blobs_put(struct blobs *b, struct item *it, const struct blob **ret);
void blobs_unpin(struct blobs *b, const struct blob *blob);

/* The node stands for something that changes from now on: who pinned it keeps it. */
void blobs_drop(struct blobs *b, uint64_t nid);

/* As blobs_pin(), but also what was dropped while it is pinned: for the attributes of an
 * open file. */
const struct blob *blobs_look(struct blobs *b, uint64_t nid);

struct blobs_info {
	size_t count, bytes, pinned;
	uint64_t hits, misses;
};
void blobs_info(struct blobs *b, struct blobs_info *ret);

#endif
