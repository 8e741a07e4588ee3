/* SPDX-License-Identifier: MIT
 * The list of the blocks that a blob is made of: an extent whose pieces have BLOCKS_OF_PIECE entries
 * each, the last one fewer.  Each block is an extent below the blob. */
#ifndef SERVICE_BLOBS_BLOCK_LIST_H
#define SERVICE_BLOBS_BLOCK_LIST_H

#include "service/blobs/blob_record.h"
#include "service/core/service.h"

#define BLOCKS_OF_PIECE 64u
#define BLOCK_ID_BYTES 64
#define BLOCK_ENTRY_BYTES (8 + 8 + 8 + 1 + BLOCK_ID_BYTES)

struct block_id {
	uint8_t n; /* 0: the block of an append blob */
	char bytes[BLOCK_ID_BYTES];
};
int block_id_cmp(const struct block_id *a, const struct block_id *b);

struct block {
	uint64_t size, end; /* bytes; where it ends in the blob */
	uint64_t extent;
	struct block_id id;
};

/* Returns whether the record's content is a list of blocks. */
static inline bool blob_has_blocks(const struct blob_record *r)
{
	return r->type == BLOB_APPEND || r->blocks > 0;
}
/* Returns how many pieces a list of n blocks has. */
static inline uint64_t block_list_pieces(uint64_t n)
{
	return (n + BLOCKS_OF_PIECE - 1) / BLOCKS_OF_PIECE;
}

/* Appends an entry to the body of a piece. */
void block_write(const struct block *b, struct buf *out);
/* Writes all pieces of a list, a part in each commit; none of them is durable. */
enum err block_list_write(struct service *s, enum origin origin, uint64_t list,
	const struct block *blocks, size_t n, struct err_detail *detail);

/* Reads n entries, from number `first` on.  ERR_GONE: the list was removed.  ERR_CORRUPT. */
enum err block_list_load(struct store *s, struct store_view *v, uint64_t list, uint64_t first,
	size_t n, struct block *ret);
/* Reads n bytes of a content of blocks; offset and n must be inside.  The cost grows with the bytes, and
 * with the logarithm of the number of blocks.  ERR_GONE: the content was replaced. */
enum err block_list_read(
	struct service *s, const struct blob_record *r, uint64_t offset, char *out, size_t n);
/* For a check: sets *ret to what is wrong with the blocks of a blob, with its body; NULL: nothing. */
enum err blob_blocks_wrong(
	struct store *s, struct store_view *v, const struct item *it, const char **ret);

#endif
