/* SPDX-License-Identifier: MIT
 * What a change set does: the rules of store.h, worked out on a small tree in memory.  The engine
 * in memory has all of its items there.  An engine that keeps them elsewhere loads those that a set
 * names, and writes the difference.  Private to the store. */
#ifndef STORE_PLAN_H
#define STORE_PLAN_H

#include "store/state.h"

struct plan;

struct plan_ops {
	/* Puts the item into the state if the engine has it and has not loaded it for this plan
	 * before.  NULL: everything is in the state. */
	enum err (*load_id)(struct plan *p, uint64_t id);
	enum err (*load_child)(
		struct plan *p, uint64_t parent, enum item_class class, struct span key);
	/* A new id for *it, whose parent and kind are known. */
	enum err (*take_id)(struct plan *p, const struct item *it, uint64_t *ret);
	/* The file `id` has `size` bytes from now on: those of `was` (NULL: none) as far as it
	 * goes, zeros, and `bytes` at `offset`.  *ret_data goes into its node. */
	enum err (*content)(struct plan *p, const struct item *was, uint64_t id, uint64_t size,
		uint64_t offset, struct span bytes, char **ret_data);
};

struct plan {
	const struct plan_ops *ops;
	struct state *s; /* may be changed; thrown away on failure */
	unsigned abilities;
	struct item unit; /* without STORE_CAN_SPAN: the directory of the first change */
	uint64_t file_bytes, limit_file, limit_files;
	uint64_t piece_bytes, limit_pieces; /* of blobs */
	struct change *set;
	size_t at;
	enum err failed; /* what a load answered */
	/* Whether a partition that loses its last child stays until the end of the set, so that
	 * one that gets another child meanwhile keeps its id. */
	bool empties_late;
	uint64_t emptied;          /* such a partition; 0: none */
	struct change *emptied_by; /* the last change that did */
};

/* Works out w->set[w->at], which is *c. */
enum err plan_change(struct plan *w, struct change *c);
/* After the last one.  w->emptied stays if that partition goes. */
enum err plan_end(struct plan *w);

#endif
