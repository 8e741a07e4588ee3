/* SPDX-License-Identifier: MIT
 * The rows that the service found lately for a filter: parts of its answer in the order of the keys, each
 * with the time when it was asked.  Bounded memory: the oldest parts are forgotten first. */
#ifndef CLOUDSTORE_FOUND_H
#define CLOUDSTORE_FOUND_H

#include "base/buf.h"
#include "base/err.h"
#include "store/store.h"

#define FOUND_KEYS ((size_t)4 << 20) /* more than the keys of a response have */

struct found;

/* All matching rows from one place of a table to another one, both among them.  Keys are in order form. */
struct found_part {
	uint64_t table, asked_us;
	struct buf filter, from_pk, from_rk;
	struct buf to_pk, to_rk;
	bool to_end;       /* the part goes on to the end of the table, */
	bool to_partition; /* or of the partition to_pk */
	struct buf keys;   /* found_next() reads them */
};

/* max_age_us 0: nothing is kept.  NULL: memory is out. */
struct found *found_new(uint64_t max_age_us);
void found_free(struct found *f); /* NULL is fine */

/* Makes an empty part.  Call found_part_fini(). */
void found_part_init(struct found_part *p, const struct store_find *q, uint64_t asked_us);
void found_part_fini(struct found_part *p);
/* Appends a row, the last one so far. */
void found_part_add(struct found_part *p, struct span pk, struct span rk);
/* Takes the next row from the keys.  False behind the last one. */
bool found_next(struct span *keys, struct span *ret_pk, struct span *ret_rk);

/* Counts what may make a response out of date; for found_copy(). */
uint64_t found_changes(struct found *f);
/* Forgets the parts of a table, since this mount changed rows there. */
void found_forget(struct found *f, uint64_t table);
/* Keeps a copy of the part unless found_changes() has moved on.  The part stays the caller's.  ERR_NO_MEMORY: it
 * lacks keys, for which there was no memory, and is freed. */
enum err found_copy(struct found *f, struct found_part *p, uint64_t changes);
/* Copies the part that holds the place where the question begins.  False: there is none. */
bool found_get(struct found *f, const struct store_find *q, struct found_part *ret);
/* Returns whether a part has the row; rk.p NULL: a row of the partition. */
bool found_has(struct found *f, uint64_t table, struct span pk, struct span rk);

/* Compares two places.  pk.p NULL is behind all partitions, rk.p NULL behind all rows of pk. */
int found_place_cmp(struct span pk, struct span rk, struct span other_pk, struct span other_rk);
/* The last place of a part, for found_place_cmp(). */
void found_part_end(const struct found_part *p, struct span *ret_pk, struct span *ret_rk);

#endif
