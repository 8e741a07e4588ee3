/* SPDX-License-Identifier: MIT
 * Walking a tree of directories with store calls in between, which a callback of
 * store_list() must not make: one child at a time, by the key behind the last one. */
#ifndef SERVICE_CHECK_WALK_H
#define SERVICE_CHECK_WALK_H

#include "store/store.h"

/* Puts the first child of parent behind *at into *at, whose old content is freed; a zeroed
 * item starts.  ERR_NOT_FOUND at the end (*at is empty then). */
enum err walk_next(struct store *s, struct store_view *v, uint64_t parent, enum item_class class,
	unsigned want, struct item *at);

#endif
