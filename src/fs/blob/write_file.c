/* SPDX-License-Identifier: MIT */
#include "fs/blob/write_file.h"

#include "fs/blob/nodes.h"
#include "fs/blob/room.h"
#include "fs/refused/reason.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct write_file {
	struct vfile file; /* first */
	struct blob_stage *stage;
	struct blob_writer writer;
	bool writes; /* else it reads what another descriptor writes, and commits nothing */
	uint64_t container;
	char name[LIMIT_FILE_NAME_BYTES + 1]; /* for the reason of a refusal */
};

static struct write_file *own(struct vfile *f)
{
	return (struct write_file *)f;
}

static enum err file_read(
	struct vfile *f, const struct caller *call, uint64_t offset, size_t n, struct buf *out)
{
	(void)call;
	return blob_stage_read(f->fs, own(f)->stage, offset, n, out);
}

static enum err file_write(
	struct vfile *f, const struct caller *call, uint64_t offset, struct span bytes)
{
	return blob_stage_write(f->fs, own(f)->stage, &own(f)->writer, offset, bytes, call->detail);
}

static enum err file_seek(struct vfile *f, bool hole, uint64_t offset, uint64_t *ret)
{
	return blob_stage_seek(f->fs, own(f)->stage, hole, offset, ret);
}

static enum err file_allocate(
	struct vfile *f, const struct caller *call, int mode, uint64_t offset, uint64_t n)
{
	return blob_stage_allocate(f->fs, own(f)->stage, mode, offset, n, call->detail);
}

static enum err commit(struct vfile *f, bool durable, struct err_detail *detail)
{
	if (atomic_exchange(&f->write_lost, false))
		blob_stage_lose(own(f)->stage, ERR_NO_MEMORY);
	return blob_stage_commit(f->fs, own(f)->stage, durable, detail);
}

static enum err file_close(struct vfile *f, const struct caller *call)
{
	enum err e = commit(f, false, call->detail);
	return e == ERR_OK ? blob_stage_check(f->fs, own(f)->stage, &own(f)->writer, call->detail)
			   : e;
}

static enum err file_sync(struct vfile *f, const struct caller *call)
{
	return commit(f, true, call->detail);
}

/* The last close commits what no close of the opener did. */
static void file_free(struct vfile *f)
{
	struct err_detail detail = { 0 };
	enum err e = ERR_OK;
	if (atomic_load(&f->write_lost))
		blob_stage_lose(own(f)->stage, ERR_NO_MEMORY);
	if (own(f)->writes && !f->unopened)
		e = blob_stage_close(f->fs, own(f)->stage, &detail);
	else
		blob_stage_unref(f->fs->blobs->stages, own(f)->stage);
	if (e != ERR_OK)
		reasons_add(f->fs->reasons,
			&(struct refusal){ .call = "close",
				.dir = own(f)->container,
				.name = span_of(own(f)->name),
				.error = e,
				.detail = &detail });
	free(f);
}

static const struct vfile_ops file_ops = {
	.pool = VPOOL_CHANGE,
	.read = file_read,
	.write = file_write,
	.seek = file_seek,
	.allocate = file_allocate,
	.close = file_close,
	.sync = file_sync,
	.free = file_free,
};

enum err write_file_open(struct fs *fs, uint64_t container, struct span name, uint64_t number,
	int flags, struct vfile **ret)
{
	struct write_file *f = calloc(1, sizeof(*f));
	if (f == NULL)
		return ERR_NO_MEMORY;
	f->file =
		(struct vfile){ .ops = &file_ops, .fs = fs, .lock_id = blob_ino(container, name) };
	f->writer.append = (flags & O_APPEND) != 0;
	f->writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
	f->container = container;
	memcpy(f->name, name.p, name.n < sizeof(f->name) ? name.n : sizeof(f->name) - 1);
	enum err e = blob_stage_open(fs, container, name, number, &f->stage);
	if (e == ERR_OK && (flags & O_TRUNC) != 0) {
		e = blob_stage_resize(fs, f->stage, 0, NULL);
		if (e != ERR_OK)
			blob_stage_unref(fs->blobs->stages, f->stage);
	}
	if (e != ERR_OK) {
		free(f);
		return e;
	}
	*ret = &f->file;
	return ERR_OK;
}
