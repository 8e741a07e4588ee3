/* SPDX-License-Identifier: MIT
 * The content of a staged write, and its commit. */
#include "fs/blob/stage.h"

#include "fs/blob/room.h"
#include "fs/blob/stage_parts.h"
#include "service/blobs/blobs.h"
#include "service/blobs/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK ((size_t)256 << 10)
#define COMMIT_TRIES 16

static enum err write_all(int fd, uint64_t offset, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t done = pwrite(fd, p, n, (off_t)offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done == 0 ? ERR_IO : err_from_errno(errno);
		p += done;
		offset += (size_t)done;
		n -= (size_t)done;
	}
	return ERR_OK;
}

/* A file that is cut to nothing is sent to the disk by ext4 at its close, and this one is dropped then. */
static enum err set_length(int fd, uint64_t n)
{
	struct stat now;
	if (fstat(fd, &now) == 0 && (uint64_t)now.st_size == n)
		return ERR_OK;
	return ftruncate(fd, (off_t)n) == 0 ? ERR_OK : err_from_errno(errno);
}

/* Which blob the stage is about; its name is copied. */
static struct blob_pages pages_of(
	struct fs *fs, const struct blob_stage *s, char name[BLOB_NAME_BYTES])
{
	mutex_lock(&fs->blobs->stages->lock);
	memcpy(name, s->name, s->name_n);
	const struct blob_pages p = { s->container, span_make(name, s->name_n),
		atomic_load(&s->extent) };
	mutex_unlock(&fs->blobs->stages->lock);
	return p;
}

enum err blob_stage_blob(struct fs *fs, struct blob_stage *s, struct blob_info *ret)
{
	char name[BLOB_NAME_BYTES];
	const struct blob_pages p = pages_of(fs, s, name);
	enum err e = blob_find(fs->service, p.container, p.name, ret);
	return e == ERR_BLOB_NOT_FOUND ? ERR_GONE : e;
}

/* Takes the blob's size, and copies up to `keep` bytes of it. */
static enum err copy_blob(struct fs *fs, struct blob_stage *s, uint64_t keep, char *chunk)
{
	struct blob_info b;
	enum err e = blob_stage_blob(fs, s, &b);
	if (e != ERR_OK)
		return e;
	uint64_t size = keep < b.record.size ? keep : b.record.size;
	for (uint64_t at = 0; at < size && e == ERR_OK; at += CHUNK) {
		size_t n = CHUNK < size - at ? CHUNK : (size_t)(size - at);
		e = blob_read(fs->service, &b.record, at, chunk, n);
		if (e == ERR_OK)
			e = write_all(s->fd, at, chunk, n);
	}
	if (e == ERR_OK)
		s->size = b.record.size;
	blob_info_fini(&b);
	return e;
}

static bool is_removed(struct fs *fs, const struct blob_stage *s)
{
	mutex_lock(&fs->blobs->stages->lock);
	bool removed = s->removed;
	mutex_unlock(&fs->blobs->stages->lock);
	return removed;
}

/* The name has become a blob. */
static void is_there(struct fs *fs, struct blob_stage *s)
{
	mutex_lock(&fs->blobs->stages->lock);
	s->fresh = false;
	mutex_unlock(&fs->blobs->stages->lock);
	blob_dirs_filled(fs->blobs->dirs, s->container, blob_stage_name(s));
}

/* Copies the part of the blob that stays, before the first read or change.  So all is of one version,
 * the one that is there at this moment. */
static enum err load(struct fs *fs, struct blob_stage *s, uint64_t keep)
{
	lock_assert_held(&s->lock);
	if (s->loaded)
		return ERR_OK;
	char *chunk = malloc(CHUNK);
	enum err e = chunk == NULL ? ERR_NO_MEMORY : ERR_OK;
	if (e == ERR_OK)
		e = set_length(s->fd, 0);
	if (e == ERR_OK && keep > 0)
		e = copy_blob(fs, s, keep, chunk);
	free(chunk);
	if (e == ERR_OK)
		e = set_length(s->fd, s->size);
	s->loaded = e == ERR_OK;
	return e;
}

uint64_t blob_stage_size(const struct blob_stage *s)
{
	return atomic_load(&s->size);
}

bool blob_stage_is_pages(struct blob_stage *s)
{
	return atomic_load(&s->extent) != 0;
}

static enum err read_pages(
	struct fs *fs, struct blob_stage *s, uint64_t offset, size_t n, struct buf *out)
{
	char name[BLOB_NAME_BYTES];
	const struct blob_pages p = pages_of(fs, s, name);
	return blob_pages_read(fs, &p, offset, n, out);
}

static enum err write_pages(struct fs *fs, struct blob_stage *s, struct blob_writer *w,
	uint64_t offset, struct span bytes, struct err_detail *detail)
{
	char name[BLOB_NAME_BYTES];
	const struct blob_pages p = pages_of(fs, s, name);
	return blob_pages_write(fs, &p, w, offset, bytes, detail);
}

enum err blob_stage_check(
	struct fs *fs, struct blob_stage *s, const struct blob_writer *w, struct err_detail *detail)
{
	char name[BLOB_NAME_BYTES];
	const struct blob_pages p = pages_of(fs, s, name);
	return blob_writer_check(fs, &p, w, detail);
}

static enum err resize_pages(
	struct fs *fs, struct blob_stage *s, uint64_t size, struct err_detail *detail)
{
	char name[BLOB_NAME_BYTES];
	const struct blob_pages p = pages_of(fs, s, name);
	return blob_pages_resize(fs, &p, size, detail);
}

enum err blob_stage_seek(
	struct fs *fs, struct blob_stage *s, bool hole, uint64_t offset, uint64_t *ret)
{
	char name[BLOB_NAME_BYTES];
	const struct blob_pages p = pages_of(fs, s, name);
	uint64_t size = blob_stage_size(s);
	if (blob_stage_is_pages(s))
		return blob_pages_seek(fs, &p, hole, offset, ret);
	*ret = hole ? size : offset;
	return offset < size ? ERR_OK : ERR_BEHIND_END;
}

enum err blob_stage_allocate(struct fs *fs, struct blob_stage *s, int mode, uint64_t offset,
	uint64_t n, struct err_detail *detail)
{
	char name[BLOB_NAME_BYTES];
	const struct blob_pages p = pages_of(fs, s, name);
	return blob_stage_is_pages(s) ? blob_pages_allocate(fs, &p, mode, offset, n, detail)
				      : ERR_NOT_SUPPORTED;
}

static enum err make_pages(struct fs *fs, struct blob_stage *s, struct err_detail *detail)
{
	struct blob_stages *t = fs->blobs->stages;
	uint64_t extent = 0;
	lock_assert_held(&s->lock);
	mutex_lock(&t->names);
	enum err e = is_removed(fs, s)
		? ERR_GONE
		: blob_pages_create(fs, s->container, blob_stage_name(s), NULL, &extent, detail);
	if (e == ERR_OK) {
		s->news = false;
		atomic_store(&s->extent, extent);
		is_there(fs, s);
	}
	mutex_unlock(&t->names);
	return e;
}

/* Returns whether it may become a page blob: nothing is written, and no blob has the name. */
static bool is_blank(struct fs *fs, const struct blob_stage *s)
{
	mutex_lock(&fs->blobs->stages->lock);
	bool blank = s->fresh && !s->removed && !s->written;
	mutex_unlock(&fs->blobs->stages->lock);
	return blank;
}

enum err blob_stage_make_pages(struct fs *fs, struct blob_stage *s, struct err_detail *detail)
{
	mutex_lock(&s->lock);
	enum err e = is_blank(fs, s) && s->size == 0 ? make_pages(fs, s, detail) : ERR_BLOB_TYPE;
	mutex_unlock(&s->lock);
	return e;
}

enum err blob_stage_read(
	struct fs *fs, struct blob_stage *s, uint64_t offset, size_t n, struct buf *out)
{
	if (blob_stage_is_pages(s))
		return read_pages(fs, s, offset, n, out);
	mutex_lock(&s->lock);
	enum err e = load(fs, s, UINT64_MAX);
	if (e == ERR_OK && offset < s->size) {
		n = n < s->size - offset ? n : (size_t)(s->size - offset);
		e = buf_reserve(out, n) ? ERR_OK : ERR_NO_MEMORY;
		ssize_t got =
			e == ERR_OK ? pread(s->fd, out->data + out->len, n, (off_t)offset) : 0;
		if (got < 0)
			e = err_from_errno(errno);
		else
			out->len += (size_t)got;
	}
	mutex_unlock(&s->lock);
	return e;
}

enum err blob_stage_write(struct fs *fs, struct blob_stage *s, struct blob_writer *w,
	uint64_t offset, struct span bytes, struct err_detail *detail)
{
	mutex_lock(&s->lock);
	if (blob_stage_is_pages(s)) {
		mutex_unlock(&s->lock);
		return write_pages(fs, s, w, offset, bytes, detail);
	}
	enum err e = load(fs, s, UINT64_MAX);
	offset = w->append ? s->size : offset;
	if (e == ERR_OK)
		e = write_all(s->fd, offset, bytes.p, bytes.n);
	if (e == ERR_OK) {
		s->size = offset + bytes.n > s->size ? offset + bytes.n : s->size;
		s->news = s->written = true;
		s->refused = false;
	} else {
		s->lost = e;
	}
	mutex_unlock(&s->lock);
	return e;
}

void blob_stage_lose(struct blob_stage *s, enum err e)
{
	mutex_lock(&s->lock);
	if (!blob_stage_is_pages(s)) /* that is written in place */
		s->lost = e;
	mutex_unlock(&s->lock);
}

static enum err resize_file(struct fs *fs, struct blob_stage *s, uint64_t size)
{
	enum err e = load(fs, s, size);
	if (e == ERR_OK)
		e = set_length(s->fd, size);
	if (e == ERR_OK) {
		s->news = s->news || s->size != size;
		s->size = size;
		if (size == 0)
			s->lost = ERR_OK;
	}
	return e;
}

enum err blob_stage_resize(
	struct fs *fs, struct blob_stage *s, uint64_t size, struct err_detail *detail)
{
	enum err e = ERR_OK;
	mutex_lock(&s->lock);
	if (is_blank(fs, s) && s->size == 0 && size > 0 && size % BLOB_PAGE_BYTES == 0)
		e = make_pages(fs, s, detail);
	if (e == ERR_OK)
		e = blob_stage_is_pages(s) ? resize_pages(fs, s, size, detail)
					   : resize_file(fs, s, size);
	mutex_unlock(&s->lock);
	return e;
}

/* ---- commit ---- */

/* The content as an upload, or in `small`. */
static enum err upload(struct fs *fs, struct blob_stage *s, char *chunk, struct span *ret_small,
	struct blob_upload **ret, struct err_detail *detail)
{
	enum err e = blob_upload_new(fs->service, ORIGIN_MOUNT, ret);
	size_t n = 0;
	for (uint64_t at = 0; at < s->size && e == ERR_OK; at += n) {
		ssize_t got = pread(s->fd, chunk, CHUNK, (off_t)at);
		if (got <= 0)
			e = got < 0 ? err_from_errno(errno) : ERR_IO;
		n = got > 0 ? (size_t)got : 0;
		if (e == ERR_OK && s->size <= BLOB_INLINE_BYTES)
			*ret_small = span_make(chunk, n);
		else if (e == ERR_OK)
			e = blob_upload_add(*ret, span_make(chunk, n), detail);
	}
	return e == ERR_OK ? blob_upload_end(*ret, detail) : e;
}

/* Puts the content over what is there, whose attributes stay.  A blob of another type is kept: it was made
 * after the program opened the file, and its pages are not in the stage. */
static enum err put_named(
	struct fs *fs, struct blob_stage *s, struct blob_new *to, struct err_detail *detail)
{
	enum err e = ERR_BLOB_CONDITION;
	int64_t etag;
	lock_assert_held(&fs->blobs->stages->names);
	for (int i = 0; e == ERR_BLOB_CONDITION && i < COMMIT_TRIES; i++) {
		struct blob_info there;
		struct blob_conditions only = { 0 };
		e = blob_find(fs->service, s->container, blob_stage_name(s), &there);
		if (e == ERR_OK && there.record.type != BLOB_BLOCK)
			e = err_set(detail, ERR_GONE,
				"It became a blob of another type after it was opened.");
		if (e == ERR_OK) {
			to->properties = there.record.properties;
			to->properties.md5 = SPAN_LIT("");
			to->metadata = there.record.metadata;
			to->tier = there.record.tier;
			only.match = there.record.etag;
		}
		if (e == ERR_OK || e == ERR_BLOB_NOT_FOUND)
			e = blob_put(fs->service, ORIGIN_MOUNT, s->container, blob_stage_name(s),
				to, &only, &etag, detail);
		blob_info_fini(&there);
	}
	return e;
}

/* The same, unless the name was removed during the upload. */
static enum err put(
	struct fs *fs, struct blob_stage *s, struct blob_new *to, struct err_detail *detail)
{
	struct blob_stages *t = fs->blobs->stages;
	mutex_lock(&t->names);
	bool removed = is_removed(fs, s);
	enum err e = removed ? ERR_OK : put_named(fs, s, to, detail);
	if (e == ERR_OK && !removed)
		is_there(fs, s);
	mutex_unlock(&t->names);
	return e;
}

static enum err commit(struct fs *fs, struct blob_stage *s, bool durable, struct err_detail *detail)
{
	static const struct blob_properties none = { SPAN_LIT(""), SPAN_LIT(""), SPAN_LIT(""),
		SPAN_LIT(""), SPAN_LIT(""), SPAN_LIT("") };
	struct blob_new to = { .properties = none,
		.metadata = SPAN_LIT(""),
		.content = SPAN_LIT(""),
		.lazy = !durable };
	struct blob_upload *u = NULL;
	char *chunk = malloc(CHUNK);
	enum err e = chunk == NULL ? ERR_NO_MEMORY : upload(fs, s, chunk, &to.content, &u, detail);
	if (s->size > BLOB_INLINE_BYTES)
		to.upload = u;
	if (e == ERR_OK)
		e = put(fs, s, &to, detail);
	blob_upload_free(u);
	free(chunk);
	return e;
}

enum err blob_stage_commit(
	struct fs *fs, struct blob_stage *s, bool durable, struct err_detail *detail)
{
	enum err e = ERR_OK;
	mutex_lock(&s->lock);
	if (s->lost != ERR_OK) {
		e = s->lost;
		s->refused = true;
	} else if (s->news && !is_removed(fs, s)) {
		e = commit(fs, s, durable, detail);
		s->refused = e != ERR_OK;
		s->news = e != ERR_OK;
	} else if (durable) {
		e = store_sync(fs->store);
	}
	mutex_unlock(&s->lock);
	return e == ERR_CONTAINER_NOT_FOUND ? ERR_GONE : e;
}
