/* SPDX-License-Identifier: MIT
 * Walks a directory with store calls in between.  A callback of store_list() must not make such
 * calls, so this takes one child at a time, by the key of the last one. */
#ifndef SERVICE_CHECK_WALK_H
#define SERVICE_CHECK_WALK_H

#include "store/store.h"

/* Replaces *at by the next child of parent.  A zeroed item starts; the old item is freed.
 * ERR_NOT_FOUND at the end; *at is then empty. */
enum err walk_next(struct store *s, struct store_view *v, uint64_t parent, enum item_class class,
	unsigned want, struct item *at);

#endif
