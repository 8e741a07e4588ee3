/* SPDX-License-Identifier: MIT
 * Read-ahead for programs that walk a table: one request reads a partition and those behind it, up to a
 * page of rows.  Private to cloudstore/. */
#ifndef CLOUDSTORE_WALK_H
#define CLOUDSTORE_WALK_H

#include "cloudstore/refresh.h"

/* Whether all rows of the partition were confirmed lately, with those of its neighbours. */
bool walk_covers(struct cloudstore *s, const struct item *partition);
/* Forgets what was confirmed so in a table. */
void walk_forget(struct cloudstore *s, uint64_t table);
/* Notes that a program read the partition to its end. */
void walk_note(struct cloudstore *s, const struct item *partition);
/* Returns whether the partition follows the one that was noted last in its table.  False without a cache: it
 * would not keep the rows of the neighbours. */
bool walk_follows(struct cloudstore *s, const struct item *partition);
/* Reads the partition from its start, and those behind it.  Takes the lock of the table's names.  Errors as in
 * refresh.h; ERR_NOT_FOUND: the table is gone. */
enum err walk_read(struct cloudstore *s, const struct item *partition, struct refreshed *ret);

#endif
