/* SPDX-License-Identifier: MIT
 * A whole store into an empty one, whatever their engines are. */
#ifndef SERVICE_TRANSFER_STORE_TRANSFER_H
#define SERVICE_TRANSFER_STORE_TRANSFER_H

#include "store/store.h"

struct store_transfer_counts {
	uint64_t items, bytes; /* items without the pieces of blobs; bytes of all bodies */
	bool left;             /* after an error: a part of the copy could not be removed */
};
/* Is called after each commit; return false to stop. */
typedef bool (*store_transfer_fn)(void *arg, const struct store_transfer_counts *so_far);

/* Whether nothing but the fixed items is there.  Errors of a read. */
enum err store_is_empty(struct store *s, bool *ret);

/* Writes into `to`, which is empty, what the view of `from` shows: accounts with their keys, and all that
 * is in them, refused bytes and the trash.  Items keep their keys, bodies, attributes and versions (so
 * Timestamps and ETags), and get new ids.  Their birth times become their versions.  Removed files that
 * are open, and unfinished uploads of blobs, are left out.
 *
 * Where `from` has no views (NULL) each page of a directory is of one moment, and so is each blob.
 * Synced at the end.  After an error what this call made is removed again, and nothing else.
 * ERR_CANCELLED: fn said so. */
enum err store_transfer(struct store *from, struct store_view *v, struct store *to,
	store_transfer_fn fn, void *arg, struct store_transfer_counts *ret,
	struct err_detail *detail);

#endif
