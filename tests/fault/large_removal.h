/* SPDX-License-Identifier: MIT
 * A partition with many rows, which is removed: its space is reclaimed in slices.  Included as one_store.h
 * is. */
#ifndef FAULT_LARGE_REMOVAL_H
#define FAULT_LARGE_REMOVAL_H

#include "base/lock.h"
#include "one_store.h"
#include "store/sqlite/store.h"

#define SET 1000

static uint64_t doomed; /* a partition beside p */

static inline void fill(int rows, size_t bytes)
{
	static char body[4096];
	struct change c[SET];
	char keys[SET][16];
	doomed = make(ITEM_PARTITION, (struct item_ref){ .parent = table, .key = SPAN_LIT("q") });
	for (int i = 0; i < rows; i += SET) {
		for (int k = 0; k < SET; k++) {
			(void)snprintf(keys[k], sizeof(keys[k]), "%08d", i + k);
			c[k] = put(ITEM_ROW, row_at("q", keys[k]), span_make(body, bytes));
		}
		CHECK_ERR(apply_set(c, SET), ERR_OK);
	}
}

static inline enum err remove_all(void)
{
	return apply(removal((struct item_ref){ .id = doomed }, CHANGE_RECURSIVE));
}

static inline struct store_info info(void)
{
	struct store_info i;
	store_info(store, &i);
	return i;
}

/* From here on nothing is reclaimed but by the test. */
static inline void stop_reclaimer(void)
{
	sql_reclaimer_stop(sql_of(store));
}

static inline enum err reclaim_slice(void)
{
	size_t done;
	struct sql_store *st = sql_of(store);
	mutex_lock(&st->lock);
	enum err e = sql_reclaim_slice(st, &done);
	mutex_unlock(&st->lock);
	return e;
}

static inline void wait_until_reclaimed(void)
{
	while (info().reclaiming)
		(void)usleep(1000);
}

#endif
