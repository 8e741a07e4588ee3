/* SPDX-License-Identifier: MIT
 * The content of a page blob: pages of 512 bytes, of which only those that were written are kept.
 *
 * Eight pages stand together in a piece of the blob's extent.  The key of the piece is its number, its
 * flags are the mask of the pages that are valid, and its body has these pages only.  So ranges are
 * read from keys and flags, and no content is read for them. */
#ifndef SERVICE_BLOBS_PAGES_H
#define SERVICE_BLOBS_PAGES_H

#include "service/core/service.h"

#define BLOB_PAGE_BYTES ((uint64_t)512)
#define PAGES_OF_PIECE 8u
#define PAGES_PIECE_BYTES (BLOB_PAGE_BYTES * PAGES_OF_PIECE)
#define PAGE_BLOB_MAX_BYTES ((uint64_t)8 << 40)

/* Reads n bytes at any offset; pages that are not valid are zeros.  One call gives bytes of one
 * moment.  ERR_GONE: the extent was removed meanwhile. */
enum err pages_read(struct service *s, uint64_t extent, uint64_t offset, char *out, size_t n);

/* Takes a range of valid bytes.  Return false to stop.  No call of the service from here. */
typedef bool (*page_range_fn)(void *arg, uint64_t first, uint64_t last);
/* Lists the valid ranges of [from, end) in order, cut at both: adjacent pages are one range.  After
 * `max` ranges *ret_next is where the next one begins, else it is `end`.  The cost grows with the
 * pieces in [from, end).  ERR_GONE as above. */
enum err pages_list(struct service *s, uint64_t extent, uint64_t from, uint64_t end, uint64_t max,
	page_range_fn fn, void *arg, uint64_t *ret_next);

/* One piece as it is found; `mask` is not 0. */
struct page_piece {
	uint32_t number;
	uint8_t mask;
};
/* Finds the pieces from number `first` to `last`, up to max of them.  An extent that is gone has
 * none. */
enum err pages_find(struct service *s, uint64_t extent, uint32_t first, uint32_t last, size_t max,
	struct page_piece *ret, size_t *ret_n);
/* Reads the valid pages of a piece to where they stand in `out`, and leaves the others.  Sets *ret_mask,
 * to 0 if there is no piece. */
enum err pages_load(struct service *s, uint64_t extent, uint32_t number,
	char out[PAGES_PIECE_BYTES], uint8_t *ret_mask);

/* For a check: sums up the valid pages of an extent.  Sets *ret_wrong to what is wrong with a piece of
 * a content of `size` bytes; NULL: nothing. */
enum err pages_check(struct store *s, struct store_view *v, uint64_t extent, uint64_t size,
	uint64_t *ret_pages, const char **ret_wrong);

#endif
