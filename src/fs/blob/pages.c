/* SPDX-License-Identifier: MIT */
#include "fs/blob/pages.h"

#include "service/blobs/blobs.h"
#include "service/blobs/page_write.h"
#include "service/blobs/pages.h"

#include <fcntl.h>

#define APPEND_TRIES 64
#define ZERO_MODES (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)

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

static enum err resize(struct fs *fs, const struct blob_pages *p, bool only_grows, uint64_t size,
	struct err_detail *detail)
{
	const struct page_target t = target(fs, p, &no_conditions);
	const struct page_blob_edit to = { .resize = true, .only_grows = only_grows, .size = size };
	struct page_result done;
	enum err e = check_size(size, detail);
	return e == ERR_OK ? gone(page_blob_edit(&t, &to, &done, detail)) : e;
}

enum err blob_pages_resize(
	struct fs *fs, const struct blob_pages *p, uint64_t size, struct err_detail *detail)
{
	return resize(fs, p, false, size, detail);
}

static enum err write_at(struct fs *fs, const struct blob_pages *p,
	const struct blob_conditions *conditions, struct blob_writer *w, uint64_t offset,
	struct span bytes, struct err_detail *detail)
{
	struct page_target t = target(fs, p, conditions);
	struct page_result done;
	uint64_t end = offset + bytes.n;
	if (end > PAGE_BLOB_MAX_BYTES)
		return check_size(end, detail);
	t.grows = true;
	enum err e = gone(pages_patch(&t, offset, bytes, &done, detail));
	if (e != ERR_OK)
		return e;
	w->etag = done.etag;
	w->written = done.grew || end > w->written ? end : w->written;
	if (done.grew && end % BLOB_PAGE_BYTES != 0)
		w->filled = end + BLOB_PAGE_BYTES - end % BLOB_PAGE_BYTES;
	return ERR_OK;
}

static bool has_filled(const struct blob_writer *w)
{
	return w->written < w->filled;
}

enum err blob_writer_check(struct fs *fs, const struct blob_pages *p, const struct blob_writer *w,
	struct err_detail *detail)
{
	struct blob_info b;
	if (!has_filled(w) || blob_pages_find(fs, p, &b) != ERR_OK)
		return ERR_OK;
	bool unchanged = b.record.etag == w->etag;
	blob_info_fini(&b);
	return unchanged
		? err_set(detail, ERR_OUT_OF_RANGE,
			  "The size of a page blob is a multiple of 512: zeros fill its last page.")
		: ERR_OK;
}

/* Another writer may append at the same time. */
static enum err append_pages(struct fs *fs, const struct blob_pages *p, struct blob_writer *w,
	struct span bytes, struct err_detail *detail)
{
	enum err e = ERR_BLOB_CONDITION;
	for (int i = 0; e == ERR_BLOB_CONDITION && i < APPEND_TRIES; i++) {
		struct blob_info b;
		e = blob_pages_find(fs, p, &b);
		if (e != ERR_OK)
			return e;
		const struct blob_conditions only = { .match = b.record.etag };
		uint64_t size = b.record.size;
		e = write_at(fs, p, &only, w,
			has_filled(w) && w->etag == b.record.etag ? w->written : size, bytes,
			detail);
		blob_info_fini(&b);
	}
	return e;
}

enum err blob_pages_write(struct fs *fs, const struct blob_pages *p, struct blob_writer *w,
	uint64_t offset, struct span bytes, struct err_detail *detail)
{
	if (bytes.n == 0)
		return ERR_OK;
	return w->append ? append_pages(fs, p, w, bytes, detail)
			 : write_at(fs, p, &no_conditions, w, offset, bytes, detail);
}

/* ---- holes ---- */

/* The first page that is valid, from the one of the offset on. */
static enum err next_page(struct fs *fs, uint64_t extent, uint64_t offset, uint64_t *ret)
{
	struct page_piece found[2]; /* of the first one all may stand before the offset */
	uint32_t first = (uint32_t)(offset / PAGES_PIECE_BYTES);
	size_t n = 0;
	enum err e = pages_find(fs->service, extent, first, UINT32_MAX, 2, found, &n);
	for (size_t i = 0; e == ERR_OK && i < n; i++)
		for (unsigned page = 0; page < PAGES_OF_PIECE; page++) {
			*ret = found[i].number * PAGES_PIECE_BYTES + page * BLOB_PAGE_BYTES;
			if ((found[i].mask & 1u << page) != 0 && *ret + BLOB_PAGE_BYTES > offset)
				return ERR_OK;
		}
	return e == ERR_OK ? ERR_BEHIND_END : e;
}

struct first_range {
	uint64_t first, end;
};

static bool on_range(void *arg, uint64_t first, uint64_t last)
{
	*(struct first_range *)arg = (struct first_range){ first, last + 1 };
	return false;
}

static enum err next_hole(
	struct fs *fs, uint64_t extent, uint64_t offset, uint64_t size, uint64_t *ret)
{
	struct first_range r = { size, size };
	uint64_t next;
	enum err e = pages_list(fs->service, extent, offset, size, 1, on_range, &r, &next);
	*ret = r.first == offset ? r.end : offset;
	return e;
}

enum err blob_pages_seek(
	struct fs *fs, const struct blob_pages *p, bool hole, uint64_t offset, uint64_t *ret)
{
	struct blob_info b;
	enum err e = blob_pages_find(fs, p, &b);
	if (e != ERR_OK)
		return e;
	uint64_t size = b.record.size;
	blob_info_fini(&b);
	if (offset >= size)
		return ERR_BEHIND_END;
	e = hole ? next_hole(fs, p->extent, offset, size, ret)
		 : next_page(fs, p->extent, offset, ret);
	if (e == ERR_OK && *ret < offset)
		*ret = offset;
	return e;
}

/* Writes zeros into a part of one page, unless nothing is there. */
static enum err zero_part(struct fs *fs, const struct blob_pages *p, uint64_t offset, uint64_t end,
	struct err_detail *detail)
{
	static const char zeros[BLOB_PAGE_BYTES];
	const struct page_target t = target(fs, p, &no_conditions);
	struct page_result done;
	uint64_t page;
	enum err e = offset < end ? next_page(fs, p->extent, offset, &page) : ERR_BEHIND_END;
	if (e != ERR_OK || page > offset)
		return e == ERR_BEHIND_END ? ERR_OK : e;
	return gone(
		pages_patch(&t, offset, span_make(zeros, (size_t)(end - offset)), &done, detail));
}

/* Whole pages are cleared; parts of pages at the ends are written. */
static enum err zero(struct fs *fs, const struct blob_pages *p, uint64_t offset, uint64_t end,
	struct err_detail *detail)
{
	const struct page_target t = target(fs, p, &no_conditions);
	struct page_result done;
	uint64_t first = offset + (BLOB_PAGE_BYTES - offset % BLOB_PAGE_BYTES) % BLOB_PAGE_BYTES;
	uint64_t last = end - end % BLOB_PAGE_BYTES;
	if (first > last)
		return zero_part(fs, p, offset, end, detail);
	enum err e = zero_part(fs, p, offset, first, detail);
	if (e == ERR_OK && first < last)
		e = gone(pages_clear(&t, first, last - first, &done, detail));
	return e == ERR_OK ? zero_part(fs, p, last, end, detail) : e;
}

enum err blob_pages_allocate(struct fs *fs, const struct blob_pages *p, int mode, uint64_t offset,
	uint64_t n, struct err_detail *detail)
{
	struct blob_info b;
	if ((mode & ~(ZERO_MODES | FALLOC_FL_KEEP_SIZE)) != 0)
		return ERR_NOT_SUPPORTED;
	enum err e = blob_pages_find(fs, p, &b);
	if (e != ERR_OK)
		return e;
	uint64_t size = b.record.size;
	blob_info_fini(&b);
	if ((mode & FALLOC_FL_KEEP_SIZE) == 0 && offset + n > size) {
		size = offset + n;
		e = resize(fs, p, true, size, detail);
	}
	uint64_t end = offset + n < size ? offset + n : size;
	return e == ERR_OK && (mode & ZERO_MODES) != 0 && offset < end
		? zero(fs, p, offset, end, detail)
		: e;
}
