/* SPDX-License-Identifier: MIT
 * The steps of a transfer of a whole store.  Private to service/transfer. */
#ifndef SERVICE_TRANSFER_TRANSFER_STEPS_H
#define SERVICE_TRANSFER_TRANSFER_STEPS_H

#include "service/transfer/store_transfer.h"

struct transfer {
	struct store *from, *to;
	struct store_view *view;
	/* Copies an item that is no row, message or piece, with all below it, into `parent`. */
	enum err (*other)(struct transfer *t, const struct item *it, uint64_t parent);
	store_transfer_fn fn;
	void *arg;
	struct store_transfer_counts *counts;
	struct err_detail *detail;
	int64_t container; /* version of the container at work */
	uint64_t *tops;    /* ids of what was made in fixed directories, to undo it */
	size_t ntops, cap_tops;
};

/* Returns the change that makes the item below another parent. */
struct change transfer_put(const struct item *it, uint64_t parent);
/* Applies and counts; *ret_id (may be NULL): of the first item.  ERR_CANCELLED. */
enum err transfer_apply(struct transfer *t, struct change *c, size_t n, uint64_t *ret_id);
/* Makes the directory below another parent, without what is in it. */
enum err transfer_dir(
	struct transfer *t, const struct item *dir, uint64_t parent, uint64_t *ret_id);
/* Copies the items of one class of a directory into the directory `to`. */
enum err transfer_class(struct transfer *t, uint64_t from, uint64_t to, enum item_class class);

#endif
