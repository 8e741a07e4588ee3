/* SPDX-License-Identifier: MIT
 * Shared by tree.c and tree_move.c. */
#ifndef SERVICE_TREE_TREE_PARTS_H
#define SERVICE_TREE_TREE_PARTS_H

#include "service/tree/tree.h"

/* How often a change is repeated after a lost race.  Each loss means that another writer
 * succeeded. */
#define TREE_RETRIES 64

static inline struct item_ref tree__place_of(const struct dentry *at)
{
	return (struct item_ref){ .parent = at->dir->id, .class = at->class, .key = at->key };
}

/* Returns the change that hides an ordinary file; key holds its new name. */
struct change tree__orphan(struct item_ref at, uint64_t id, char key[24]);

#endif
