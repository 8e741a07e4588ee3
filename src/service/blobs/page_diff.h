/* SPDX-License-Identifier: MIT
 * The pages in which two states of a page blob differ. */
#ifndef SERVICE_BLOBS_PAGE_DIFF_H
#define SERVICE_BLOBS_PAGE_DIFF_H

#include "service/core/service.h"

/* Takes a range of bytes: pages that are valid in the new state and differ, or that were cleared.  Return
 * false to stop. */
typedef bool (*page_diff_fn)(void *arg, bool cleared, uint64_t first, uint64_t last);
/* Lists the ranges of [from, end) in which the pages of `now` differ from those of `before`, in order,
 * cut at both; adjacent pages of one kind are one range.  After `max` ranges *ret_next is where the next
 * one begins, else it is `end`.  The cost grows with the pieces of both in [from, end); pages that are
 * valid in both are read. */
enum err pages_diff(struct service *s, uint64_t before, uint64_t now, uint64_t from, uint64_t end,
	uint64_t max, page_diff_fn fn, void *arg, uint64_t *ret_next);

#endif
