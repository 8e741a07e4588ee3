/* SPDX-License-Identifier: MIT
 * The bytes of a page blob, which are changed in place.  Each call is a step of its own, that REST sees
 * at once; fsync has the disk take them. */
#ifndef FS_BLOB_PAGES_H
#define FS_BLOB_PAGES_H

#include "fs/core/state.h"
#include "service/blobs/blob_find.h"

/* Which one: the blob of this name, as long as it has this content. */
struct blob_pages {
	uint64_t container;
	struct span name;
	uint64_t extent;
};

/* The writes of one open file.  The kernel cuts a long write(2) anywhere, so only the last byte of all
 * writes has to end a page. */
struct blob_writer {
	bool append;
	uint64_t written; /* the end of its content, as far as it wrote it */
	uint64_t filled;  /* the end of the last page that was filled with zeros as the blob grew */
	int64_t etag;     /* of the blob after the last write */
};

/* Makes an empty one where no blob is, or in place of the empty block blob `old`, whose properties and
 * metadata it keeps.  Sets *ret_extent.  ERR_BLOB_EXISTS; ERR_BLOB_CONDITION: it has changed; the errors of
 * page_blob_create(). */
enum err blob_pages_create(struct fs *fs, uint64_t container, struct span name,
	const struct blob_record *old, uint64_t *ret_extent, struct err_detail *detail);
/* Finds its record.  On ERR_OK call blob_info_fini().  ERR_GONE: it was removed or replaced, as below. */
enum err blob_pages_find(struct fs *fs, const struct blob_pages *p, struct blob_info *ret);
/* Appends up to n bytes. */
enum err blob_pages_read(
	struct fs *fs, const struct blob_pages *p, uint64_t offset, size_t n, struct buf *out);
/* Writes bytes at the offset, or (append) behind the end, which is within the last page if the writer has
 * filled that one.  The blob grows to whole pages.  The errors of pages_patch(). */
enum err blob_pages_write(struct fs *fs, const struct blob_pages *p, struct blob_writer *w,
	uint64_t offset, struct span bytes, struct err_detail *detail);
/* ERR_OUT_OF_RANGE: the writes ended within a page, whose rest was filled with zeros, and nobody has
 * changed the blob since. */
enum err blob_writer_check(struct fs *fs, const struct blob_pages *p, const struct blob_writer *w,
	struct err_detail *detail);
/* ERR_OUT_OF_RANGE: not whole pages.  ERR_FILE_TOO_LARGE: above PAGE_BLOB_MAX_BYTES. */
enum err blob_pages_resize(
	struct fs *fs, const struct blob_pages *p, uint64_t size, struct err_detail *detail);
/* As `seek` of struct vfile_ops. */
enum err blob_pages_seek(
	struct fs *fs, const struct blob_pages *p, bool hole, uint64_t offset, uint64_t *ret);
/* As `allocate`: punches holes and makes zeros, which both free whole pages; grows to the size; reserves
 * nothing.  ERR_NOT_SUPPORTED: other modes. */
enum err blob_pages_allocate(struct fs *fs, const struct blob_pages *p, int mode, uint64_t offset,
	uint64_t n, struct err_detail *detail);

#endif
