/* SPDX-License-Identifier: MIT
 * Gives freed pages of the file back. */
#ifndef STORE_SQLITE_COMPACT_H
#define STORE_SQLITE_COMPACT_H

#include "store/sqlite/store.h"

/* An order to compact. */
struct sql_compaction {
	store_copy_fn fn; /* asked whether to go on; called by the leader */
	void *arg;
};

/* The leader's, between transactions.  Writers wait meanwhile, readers do not.  ERR_CANCELLED: fn said
 * so.  After an error the store is as it was. */
enum err sql_compact_now(
	struct sql_store *st, const struct sql_compaction *c, struct err_detail *detail);

#endif
