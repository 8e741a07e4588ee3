/* SPDX-License-Identifier: MIT */
#include "fs/blob/pages.h"

#include "service/blobs/blobs.h"
#include "service/blobs/page_write.h"
#include "service/blobs/pages.h"

#define GROW_TRIES 64

static const struct blob_conditions no_conditions = { 0 };

static enum err gone(enum err e)
{
	return e == ERR_BLOB_NOT_FOUND || e == ERR_BLOB_TYPE || e == ERR_CONTAINER_NOT_FOUND
		? ERR_GONE
		: e;
}

static struct page_target target(
	struct fs *fs, const struct blob_pages *p, const struct blob_conditions *conditions)
{
	return (struct page_target){ .service = fs->service,
		.origin = ORIGIN_MOUNT,
		.container = p->container,
		.name = p->name,
		.conditions = conditions,
		.extent = p->extent,
		.lazy = true };
}

enum err blob_pages_create(struct fs *fs, uint64_t container, struct span name,
	const struct blob_record *old, uint64_t *ret_extent, struct err_detail *detail)
{
	static const struct blob_properties none = { SPAN_LIT(""), SPAN_LIT(""), SPAN_LIT(""),
		SPAN_LIT(""), SPAN_LIT(""), SPAN_LIT("") };
	const struct blob_pages p = { container, name, 0 };
	const struct blob_conditions only = { .match = old != NULL ? old->etag : 0,
		.none_match = old != NULL ? 0 : ETAG_ANY };
	struct page_blob_new to = { .properties = none, .metadata = SPAN_LIT("") };
	const struct page_target t = target(fs, &p, &only);
	struct page_result done;
	struct blob_info b;
	if (old != NULL) {
		to.properties = old->properties;
		to.properties.md5 = SPAN_LIT("");
		to.metadata = old->metadata;
	}
	enum err e = page_blob_create(&t, &to, &done, detail);
	if (e == ERR_OK)
		e = gone(blob_find(fs->service, container, name, &b));
	if (e == ERR_OK) {
		*ret_extent = b.record.extent;
		blob_info_fini(&b);
	}
	return e;
}

enum err blob_pages_find(struct fs *fs, const struct blob_pages *p, struct blob_info *ret)
{
	enum err e = gone(blob_find(fs->service, p->container, p->name, ret));
	if (e != ERR_OK || ret->record.extent == p->extent)
		return e;
	blob_info_fini(ret);
	return ERR_GONE;
}

enum err blob_pages_read(
	struct fs *fs, const struct blob_pages *p, uint64_t offset, size_t n, struct buf *out)
{
	struct blob_info b;
	enum err e = blob_pages_find(fs, p, &b);
	if (e != ERR_OK)
		return e;
	uint64_t left = offset < b.record.size ? b.record.size - offset : 0;
	n = n < left ? n : (size_t)left;
	if (n > 0)
		e = buf_reserve(out, n)
			? blob_read(fs->service, &b.record, offset, out->data + out->len, n)
			: ERR_NO_MEMORY;
	if (e == ERR_OK)
		out->len += n;
	blob_info_fini(&b);
	return e;
}

static enum err check_size(uint64_t size, struct err_detail *detail)
{
	if (size > PAGE_BLOB_MAX_BYTES)
		return err_set(detail, ERR_FILE_TOO_LARGE, "A page blob has 8 TiB at most.");
	return size % BLOB_PAGE_BYTES == 0
		? ERR_OK
		: err_set(detail, ERR_OUT_OF_RANGE,
			  "The size of a page blob is a multiple of 512: cut or fill it to that.");
}

static enum err resize(struct fs *fs, const struct blob_pages *p,
	const struct blob_conditions *conditions, uint64_t size, struct err_detail *detail)
{
	const struct page_target t = target(fs, p, conditions);
	const struct page_blob_edit to = { .resize = true, .size = size };
	struct page_result done;
	enum err e = check_size(size, detail);
	return e == ERR_OK ? gone(page_blob_edit(&t, &to, &done, detail)) : e;
}

enum err blob_pages_resize(
	struct fs *fs, const struct blob_pages *p, uint64_t size, struct err_detail *detail)
{
	return resize(fs, p, &no_conditions, size, detail);
}

/* Has the blob contain what is written, and sets *offset to where that is.  Another writer may grow it at
 * the same time. */
static enum err make_place(struct fs *fs, const struct blob_pages *p, bool append, uint64_t *offset,
	size_t n, struct err_detail *detail)
{
	enum err e = ERR_BLOB_CONDITION;
	for (int i = 0; e == ERR_BLOB_CONDITION && i < GROW_TRIES; i++) {
		struct blob_info b;
		e = blob_pages_find(fs, p, &b);
		if (e != ERR_OK)
			return e;
		const struct blob_conditions only = { .match = b.record.etag };
		*offset = append ? b.record.size : *offset;
		if (*offset + n > b.record.size)
			e = resize(fs, p, &only, *offset + n, detail);
		blob_info_fini(&b);
	}
	return e;
}

enum err blob_pages_write(struct fs *fs, const struct blob_pages *p, bool append, uint64_t offset,
	struct span bytes, struct err_detail *detail)
{
	const struct page_target t = target(fs, p, &no_conditions);
	struct page_result done;
	if (bytes.n == 0)
		return ERR_OK;
	enum err e = make_place(fs, p, append, &offset, bytes.n, detail);
	return e == ERR_OK ? gone(pages_patch(&t, offset, bytes, &done, detail)) : e;
}
