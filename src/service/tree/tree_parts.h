/* SPDX-License-Identifier: MIT
 * What tree.c and tree_move.c share. */
#ifndef SERVICE_TREE_TREE_PARTS_H
#define SERVICE_TREE_TREE_PARTS_H

#include "service/tree/tree.h"

/* How often a change is tried again after it lost a race.  Each loss means that another
 * writer got on, so this ends early unless that one never rests. */
#define TREE_RETRIES 64

static inline struct place tree__place_of(const struct spot *at)
{
	return (struct place){ .parent = at->dir->id, .class = at->class, .key = at->key };
}

/* The change that takes an ordinary file out of sight; key holds its new name. */
struct change tree__orphan(struct place at, uint64_t id, char key[24]);

#endif
