/* SPDX-License-Identifier: MIT
 * Bytes that become the content of a blob, in parts.  Their extent is among the orphans of the store
 * until a blob takes it, so nobody sees it before, and a crash leaves nothing. */
#ifndef SERVICE_BLOBS_UPLOAD_H
#define SERVICE_BLOBS_UPLOAD_H

#include "service/core/service.h"

/* A piece of zeros has no bytes. */
#define EXTENT_PIECE_BYTES ((size_t)64 << 10)

struct blob_upload;

/* Begins an upload.  On ERR_OK call blob_upload_free().  One thread at a time may use it.
 * ERR_NO_MEMORY. */
enum err blob_upload_new(struct service *s, enum origin origin, struct blob_upload **ret);
/* Makes the extent of an upload without bytes, for a content that is written later. */
enum err blob_upload_make_extent(struct blob_upload *u, struct err_detail *detail);
/* Adds bytes; writes a MiB at a time.  Errors of the store. */
enum err blob_upload_add(struct blob_upload *u, struct span bytes, struct err_detail *detail);
/* Writes the rest.  No bytes may follow. */
enum err blob_upload_end(struct blob_upload *u, struct err_detail *detail);
/* Drops the extent unless a blob has taken it.  Accepts NULL. */
void blob_upload_free(struct blob_upload *u);

uint64_t blob_upload_size(const struct blob_upload *u);
/* Returns the id of the extent; 0 if there are no bytes. */
uint64_t blob_upload_extent(const struct blob_upload *u);
/* The extent is a blob's from now on. */
void blob_upload_taken(struct blob_upload *u);

/* Reads n bytes of an extent whose content has `size` bytes; all of them are there, or it is
 * damaged (ERR_CORRUPT).  ERR_GONE: it was removed meanwhile. */
enum err extent_read(
	struct service *s, uint64_t extent, uint64_t size, uint64_t offset, char *out, size_t n);
/* Returns how many pieces an extent of so many bytes has. */
static inline uint64_t extent_pieces(uint64_t size)
{
	return (size + EXTENT_PIECE_BYTES - 1) / EXTENT_PIECE_BYTES;
}
/* The place of a piece. */
#define EXTENT_KEY_CHARS 8
struct span extent_key(uint64_t number, char out[EXTENT_KEY_CHARS + 1]);

/* Removes what uploads left when a process ended.  No upload may be in progress. */
enum err blob_uploads_drop(struct service *s);

#endif
