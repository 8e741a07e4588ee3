/* SPDX-License-Identifier: MIT
 * Block ids in base64, and the body of Put Block List. */
#ifndef REST_BLOBS_BLOCK_LIST_BODY_H
#define REST_BLOBS_BLOCK_LIST_BODY_H

#include "base/buf.h"
#include "service/blobs/blocks.h"

/* Above BLOCKS_MAX entries of the longest form. */
#define BLOCK_LIST_BODY_LIMIT ((size_t)8 << 20)
#define BLOCK_LIST_BUF_LIMIT (BLOCKS_MAX * sizeof(struct block_choice) + 1)

/* Reads an id: the base64 text of 1 to BLOCK_ID_BYTES bytes.  ERR_BLOCK_ID. */
enum err block_id_read(struct span text, struct block_id *ret);

/* Reads the body, and appends a struct block_choice for each block to *out, whose limit is
 * BLOCK_LIST_BUF_LIMIT.  ERR_BLOCK_COUNT: more than BLOCKS_MAX.  ERR_BLOCK_ID, ERR_XML_INVALID,
 * ERR_BODY_TOO_LARGE, ERR_NO_MEMORY. */
enum err block_list_body_read(struct span body, struct buf *out, struct err_detail *detail);

#endif
