/* SPDX-License-Identifier: MIT
 * Finds what a change names in the shadow.  Private to cloudstore/. */
#ifndef CLOUDSTORE_PLACE_H
#define CLOUDSTORE_PLACE_H

#include "base/buf.h"
#include "store/store.h"

struct cloudstore_place {
	struct item dir;   /* kind ITEM_NONE: a partition that is not there yet */
	struct item there; /* kind ITEM_NONE: nothing */
	uint64_t table;    /* 0: in no table */
	struct buf pk, rk; /* order form */
};

/* Reads the shadow only.  Call cloudstore_place_fini() also after an error.  ERR_GONE: no item has the
 * id.  ERR_NOT_FOUND: there is no such directory. */
enum err cloudstore_place_find(
	struct store *shadow, const struct item_ref *at, struct cloudstore_place *ret);
void cloudstore_place_fini(struct cloudstore_place *p);

#endif
