/* SPDX-License-Identifier: MIT
 * The feed of changes in the file.  The writer's functions run inside the transaction of the change
 * that they tell of. */
#ifndef STORE_SQLITE_FEED_H
#define STORE_SQLITE_FEED_H

#include "store/sqlite/writer.h"

/* Reads the state from the file.  All zero: no feed was ever begun. */
enum err sql_feed_load(struct sql_conn *c, struct sql_feed_state *ret);
/* Begins the feed, or keeps it on until then (ticks). */
enum err sql_feed_keep(struct sql_writer *w, int64_t now, int64_t until);
/* A row has a new document; a partition with rows has come. */
enum err sql_feed_put(struct sql_writer *w, const struct item *it);
/* A row, or a partition with rows, goes from where it is.  Call it while the row's partition is there. */
enum err sql_feed_gone(struct sql_writer *w, const struct item *it);
/* Both, for a move.  Call it while the old partition is there, and after the new one is. */
enum err sql_feed_moved(struct sql_writer *w, const struct item *was, const struct item *will);

/* The op of this name. */
enum err sql_feed_read(
	struct store *s, const struct store_feed_position *after, store_feed_fn fn, void *arg);

#endif
