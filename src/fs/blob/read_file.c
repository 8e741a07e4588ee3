/* SPDX-License-Identifier: MIT
 * A block blob never changes: its node names one version, so the kernel may keep its pages.  Its content
 * goes when somebody replaces the blob: a read is then ERR_GONE.  A page blob is read past the kernel's
 * cache, since others change it in place. */
#include "fs/blob/read_file.h"

#include "service/blobs/blobs.h"

#include <stdlib.h>

struct read_file {
	struct vfile file; /* first */
	uint64_t container;
	struct blob_info blob; /* owned */
};

/* The record of a page blob as it is. */
static enum err refresh(struct read_file *f)
{
	struct blob_info now;
	enum err e = blob_find(f->file.fs->service, f->container, f->blob.item.key, &now);
	if (e == ERR_BLOB_NOT_FOUND ||
		(e == ERR_OK && now.record.extent != f->blob.record.extent)) {
		if (e == ERR_OK)
			blob_info_fini(&now);
		return ERR_GONE;
	}
	if (e != ERR_OK)
		return e;
	blob_info_fini(&f->blob);
	f->blob = now;
	return ERR_OK;
}

static enum err file_read(
	struct vfile *file, const struct caller *call, uint64_t offset, size_t n, struct buf *out)
{
	struct read_file *f = (struct read_file *)file;
	(void)call;
	enum err e = file->immutable ? ERR_OK : refresh(f);
	uint64_t size = f->blob.record.size;
	if (e != ERR_OK || offset >= size)
		return e;
	n = n < size - offset ? n : (size_t)(size - offset);
	if (!buf_reserve(out, n))
		return ERR_NO_MEMORY;
	e = blob_read(file->fs->service, &f->blob.record, offset, out->data + out->len, n);
	if (e == ERR_OK)
		out->len += n;
	return e;
}

static enum err file_size(struct vfile *file, const struct caller *call, uint64_t *ret)
{
	(void)call;
	*ret = ((const struct read_file *)file)->blob.record.size;
	return ERR_OK;
}

static size_t file_holds(const struct vfile *file)
{
	return ((const struct read_file *)file)->blob.item.body.n;
}

static void file_free(struct vfile *file)
{
	struct read_file *f = (struct read_file *)file;
	blob_info_fini(&f->blob);
	free(f);
}

static const struct vfile_ops file_ops = {
	.pool = VPOOL_SCAN,
	.read = file_read,
	.size = file_size,
	.holds = file_holds,
	.free = file_free,
};

enum err read_file_open(
	struct fs *fs, uint64_t container, struct blob_info *blob, struct vfile **ret)
{
	struct read_file *f = calloc(1, sizeof(*f));
	if (f == NULL) {
		blob_info_fini(blob);
		return ERR_NO_MEMORY;
	}
	f->file = (struct vfile){
		.ops = &file_ops, .fs = fs, .immutable = blob->record.type != BLOB_PAGES
	};
	f->container = container;
	f->blob = *blob;
	*ret = &f->file;
	return ERR_OK;
}
