/* SPDX-License-Identifier: MIT
 * Makes a range of a directory in the shadow as the service has it: the caller names the children that
 * the service has, in the order of their keys, and all others of the range go.  Private to cloudstore/. */
#ifndef CLOUDSTORE_MERGE_H
#define CLOUDSTORE_MERGE_H

#include "base/arena.h"
#include "store/store.h"

#define MERGE_PUTS 100

struct merge {
	struct store *shadow;
	uint64_t dir;
	struct buf next;                /* the first key that was not named or passed yet */
	struct change puts[MERGE_PUTS]; /* their keys and bodies are in `memory` */
	size_t nputs;
	struct arena memory;
	uint64_t named;  /* id of the child that was named last; 0: the shadow lacks it */
	struct buf gone; /* ids, of uint64_t, which go at the end */
};

/* Begins at `from`, which is among the range.  Call merge_fini(), also after errors. */
void merge_begin(struct merge *m, struct store *shadow, uint64_t dir, struct span from);
void merge_fini(struct merge *m);
/* Goes on at this key.  The children before it stay as they are. */
void merge_skip(struct merge *m, struct span key);
/* Names the next child.  *ret_version: that of the shadow's item, or 0 where it has none. */
enum err merge_name(struct merge *m, struct span key, int64_t *ret_version);
/* Puts the child that was named last.  Copies the key, the name and the body; `at`, `op` and `attrs` are
 * filled in.  version 0: a new one. */
enum err merge_put(struct merge *m, struct span key, const struct change *put);
/* Removes the shadow's item for the child that was named last, which is another one than the service's. */
enum err merge_drop(struct merge *m);
/* The child with this key goes, if the shadow has it. */
enum err merge_forget(struct merge *m, struct span key);
/* Ends the range behind the child that was named last, or at the end of the directory. */
enum err merge_end(struct merge *m, bool to_end);

#endif
