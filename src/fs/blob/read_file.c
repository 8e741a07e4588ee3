/* SPDX-License-Identifier: MIT
 * A block blob never changes: its node names one version, so the kernel may keep its pages.  Its content
 * goes when somebody replaces the blob: a read is then ERR_GONE.  A page blob is read past the kernel's
 * cache, since others change it in place. */
#include "fs/blob/read_file.h"

#include "fs/blob/nodes.h"
#include "fs/blob/pages.h"
#include "service/blobs/blobs.h"

#include <fcntl.h>
#include <stdlib.h>

struct read_file {
	struct vfile file; /* first */
	uint64_t container;
	struct blob_info blob; /* owned */
	struct blob_writer writer;
};

static struct blob_pages pages_of(const struct read_file *f)
{
	return (struct blob_pages){ f->container, f->blob.item.key, f->blob.record.extent };
}

static enum err file_read(
	struct vfile *file, const struct caller *call, uint64_t offset, size_t n, struct buf *out)
{
	struct read_file *f = (struct read_file *)file;
	const struct blob_pages p = pages_of(f);
	uint64_t size = f->blob.record.size;
	(void)call;
	if (!file->immutable)
		return blob_pages_read(file->fs, &p, offset, n, out);
	if (offset >= size)
		return ERR_OK;
	n = n < size - offset ? n : (size_t)(size - offset);
	if (!buf_reserve(out, n))
		return ERR_NO_MEMORY;
	enum err e = blob_read(file->fs->service, &f->blob.record, offset, out->data + out->len, n);
	if (e == ERR_OK)
		out->len += n;
	return e;
}

static enum err file_write(
	struct vfile *file, const struct caller *call, uint64_t offset, struct span bytes)
{
	struct read_file *f = (struct read_file *)file;
	const struct blob_pages p = pages_of(f);
	return blob_pages_write(file->fs, &p, &f->writer, offset, bytes, call->detail);
}

static enum err file_close(struct vfile *file, const struct caller *call)
{
	const struct read_file *f = (const struct read_file *)file;
	const struct blob_pages p = pages_of(f);
	return blob_writer_check(file->fs, &p, &f->writer, call->detail);
}

static enum err file_seek(struct vfile *file, bool hole, uint64_t offset, uint64_t *ret)
{
	const struct blob_pages p = pages_of((const struct read_file *)file);
	return blob_pages_seek(file->fs, &p, hole, offset, ret);
}

static enum err file_allocate(
	struct vfile *file, const struct caller *call, int mode, uint64_t offset, uint64_t n)
{
	const struct blob_pages p = pages_of((const struct read_file *)file);
	return blob_pages_allocate(file->fs, &p, mode, offset, n, call->detail);
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

static const struct vfile_ops pages_ops = {
	.pool = VPOOL_SCAN,
	.read = file_read,
	.seek = file_seek,
	.holds = file_holds,
	.free = file_free,
};

static const struct vfile_ops written_ops = {
	.pool = VPOOL_CHANGE,
	.seek = file_seek,
	.allocate = file_allocate,
	.read = file_read,
	.write = file_write,
	.close = file_close,
	.holds = file_holds,
	.free = file_free,
};

enum err read_file_open(
	struct fs *fs, uint64_t container, struct blob_info *blob, int flags, struct vfile **ret)
{
	struct read_file *f = calloc(1, sizeof(*f));
	if (f == NULL) {
		blob_info_fini(blob);
		return ERR_NO_MEMORY;
	}
	f->writer.append = (flags & O_APPEND) != 0;
	f->file = (struct vfile){ .ops = (flags & O_ACCMODE) != O_RDONLY ? &written_ops
			: blob->record.type == BLOB_PAGES                ? &pages_ops
									 : &file_ops,
		.fs = fs,
		.lock_id = blob_ino(container, blob->item.key),
		.immutable = blob->record.type != BLOB_PAGES };
	f->container = container;
	f->blob = *blob;
	*ret = &f->file;
	return ERR_OK;
}
