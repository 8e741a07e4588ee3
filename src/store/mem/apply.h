/* SPDX-License-Identifier: MIT
 * Change sets of the in-memory engine, on a state of their own. */
#ifndef STORE_MEM_APPLY_H
#define STORE_MEM_APPLY_H

#include "store/mem/state.h"

/* Ids that one handle may give: those of a block of the store. */
struct mem_ids {
	uint64_t next, end;
	uint64_t *last_block; /* the end of the last block that any handle took */
};

struct mem_work {
	struct state *s; /* may be changed; thrown away on failure */
	unsigned abilities;
	struct item unit; /* without STORE_CAN_SPAN: the directory of the first change */
	struct mem_ids *ids;
	uint64_t file_bytes, limit_file, limit_files;
	struct change *set;
	size_t at;
};

enum err mem_apply_one(struct mem_work *w, struct change *c);

#endif
