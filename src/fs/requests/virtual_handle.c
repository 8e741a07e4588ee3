/* SPDX-License-Identifier: MIT
 * Requests by open virtual files and directories (fs/core/virtual.h). */
#include "fs/cache/notify.h"
#include "fs/requests/virtual.h"
#include "fs/tree/open_quota.h"

#include <fcntl.h>
#include <stdlib.h>

void virtual_refuse(struct fuse_call *c, uint64_t nid, enum err e)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, nid);
	if (e == ops->refusal && c->detail.text[0] == 0)
		(void)err_set(&c->detail, e, "%s", ops->why);
	reply_err(c, e);
}

enum vpool virtual_pool(const struct handle *h)
{
	return h->kind == KIND_VIRTUAL ? h->file->ops->pool : h->vdir->ops->pool;
}

/* An error of a method of the open file. */
static void refuse_open(struct task *t, enum err e)
{
	t->call.noted = t->handle->file->noted;
	virtual_refuse(&t->call, t->nid, e);
}

static void count_held(struct open_quota *open_quota, struct handle *h)
{
	if (h->file->ops->holds != NULL)
		open_quota_set(open_quota, &h->held, h->file->ops->holds(h->file));
}

struct handle *virtual_handle(struct task *t, struct vfile *f, struct vdir *d)
{
	struct fs *fs = t->call.fs;
	struct handle *h = handle_new(
		fs, f != NULL ? KIND_VIRTUAL : KIND_VIRTUAL_DIR, t->nid, call_thread(&t->call));
	if (h == NULL) {
		if (f != NULL)
			vfile_drop(f);
		if (d != NULL)
			d->ops->free(d);
		return NULL;
	}
	mutex_init(&h->turns.lock, RANK_TURNS);
	h->vdir = d;
	if (f == NULL)
		return h;
	if ((t->fi.flags & O_ACCMODE) != O_RDONLY)
		handle_writes(fs->open_quota, h);
	h->file = f;
	count_held(fs->open_quota, h);
	handle_ready(fs->handles, h);
	t->fi.direct_io = !f->immutable;
	t->fi.keep_cache = f->immutable;
	t->fi.noflush = f->ops->close == NULL && may_skip_flush(fs->locks, &t->fi);
	return h;
}

static void run_release(struct task *t)
{
	release_now(&t->call, handle_of(&t->fi));
}

void virtual_release(struct fuse_call *c, struct handle *h)
{
	if (h->file != NULL)
		poll_end(h);
	struct fuse_file_info fi = { .fh = (uintptr_t)h };
	struct task *t = task_new(c, run_release, h->nid, &fi);
	if (t != NULL)
		task_dispatch(t, virtual_pool(h));
}

/* ---- reading and writing ---- */

/* What comes fewer is for the kernel the end of the file, where it fills pages. */
static enum err read_file(struct task *t)
{
	struct vfile *f = t->handle->file;
	size_t before;
	enum err e;
	if (f->ops->read == NULL)
		return err_set(&t->call.detail, ERR_NOT_PERMITTED,
			"Opened for writing it takes rows; open it for reading alone.");
	do {
		before = t->out.len;
		e = f->ops->read(f, &t->vcall, t->offset + before, t->size - before, &t->out);
	} while (e == ERR_OK && t->fills_pages && f->ops->resumes && t->out.len > before &&
		t->out.len < t->size);
	return e == ERR_OK && !buf_ok(&t->out) ? ERR_NO_MEMORY : e;
}

/* The kernel reads ahead before it knows where the end is.  It takes a reply without bytes for the
 * end, whatever it heard of the pages before. */
static bool is_beyond_end(struct task *t)
{
	struct vfile *f = t->handle->file;
	uint64_t size;
	return t->fills_pages && t->out.len == 0 && f->ops->size != NULL &&
		f->ops->size(f, &t->vcall, &size) == ERR_OK && t->offset > size;
}

static void run_read(struct task *t)
{
	struct vfile *f = t->handle->file;
	if (f->ops->resumes)
		task_begin_slice(t);
	f->noted = false;
	enum err e = read_file(t);
	count_held(t->call.fs->open_quota, t->handle);
	t->again = e == ERR_CANCELLED && f->ops->resumes && !task_given_up(t);
	if (t->again)
		return;
	if (e == ERR_OK && f->wait.waits) {
		task_park(t, &f->wait);
		return;
	}
	if (e == ERR_OK && is_beyond_end(t)) {
		t->call.noted = true;
		reply_err(&t->call, ERR_IO);
	} else if (e == ERR_OK) {
		reply_bytes(&t->call, t->out.data, t->out.len);
	} else {
		refuse_open(t, e);
	}
	buf_fini(&t->out);
}

void virtual_read(struct fuse_call *c, struct handle *h, size_t size, off_t offset)
{
	struct task *t = task_on_handle(c, run_read, h, (struct span){ 0 });
	if (t == NULL)
		return;
	t->size = size;
	t->offset = (uint64_t)offset;
	t->out = BUF_INIT(size);
	t->fills_pages = c->fills_pages;
	task_dispatch(t, virtual_pool(t->handle));
}

static void run_write(struct task *t)
{
	struct vfile *f = t->handle->file;
	f->noted = false;
	enum err e = f->ops->write != NULL
		? f->ops->write(f, &t->vcall, t->offset, span_make(t->bytes, t->size))
		: ERR_NOT_PERMITTED;
	count_held(t->call.fs->open_quota, t->handle);
	if (e != ERR_OK) {
		refuse_open(t, e);
		return;
	}
	reply_elsewhere(&t->call);
	fuse_reply_write(t->call.req, t->size);
}

void virtual_write(struct fuse_call *c, struct handle *h, struct span bytes, off_t offset)
{
	struct task *t = task_on_handle(c, run_write, h, bytes);
	if (t == NULL)
		return;
	t->offset = (uint64_t)offset;
	task_dispatch(t, virtual_pool(t->handle));
}

static void run_close(struct task *t)
{
	struct vfile *f = t->handle->file;
	f->noted = false;
	enum err e = f->ops->close(f, &t->vcall);
	count_held(t->call.fs->open_quota, t->handle);
	unlock_closed(t->call.fs, t->handle, t->fi.lock_owner);
	if (e != ERR_OK || !notify_ran_out()) {
		refuse_open(t, e);
		return;
	}
	reply_elsewhere(&t->call);
	notify_then_reply(t->call.fs->notifier, t->call.req);
}

void virtual_flush(struct fuse_call *c, struct handle *h, const struct fuse_file_info *fi)
{
	struct task *t = NULL;
	if (!h->writes || h->file->ops->close == NULL || !closes_for_opener(h, call_thread(c))) {
		flush_nothing(c, h, fi);
	} else if ((t = task_on_handle(c, run_close, h, (struct span){ 0 })) != NULL) {
		t->fi.lock_owner = fi->lock_owner;
		task_dispatch(t, virtual_pool(h));
	}
}

static void run_sync(struct task *t)
{
	struct vfile *f = t->handle->file;
	f->noted = false;
	refuse_open(t, f->ops->sync(f, &t->vcall));
}

void virtual_sync(struct fuse_call *c, struct handle *h)
{
	struct task *t = NULL;
	if (h->file->ops->sync == NULL)
		reply_err(c, store_sync(c->fs->store));
	else if ((t = task_on_handle(c, run_sync, h, (struct span){ 0 })) != NULL)
		task_dispatch(t, virtual_pool(h));
}

/* ---- directories ---- */

static void run_readdir(struct task *t)
{
	struct vdir *d = t->handle->vdir;
	struct dir_page p = { .fs = t->call.fs,
		.req = t->call.req,
		.size = t->size,
		.plus = t->plus,
		.keep_s = keep_seconds(t->call.fs) };
	p.bytes = malloc(t->size > 0 ? t->size : 1);
	enum err e = ERR_NO_MEMORY;
	if (p.bytes != NULL)
		e = d->ops->read(d, &t->vcall, (int64_t)t->offset, dir_page_add, &p);
	if (e == ERR_OK || p.len > 0)
		reply_bytes(&t->call, p.bytes, p.len);
	else
		reply_err(&t->call, e);
	free(p.bytes);
}

static void virtual_list(
	struct fuse_call *c, struct handle *h, size_t size, off_t offset, bool plus)
{
	struct task *t = task_on_handle(c, run_readdir, h, (struct span){ 0 });
	if (t == NULL)
		return;
	t->size = size;
	t->offset = (uint64_t)offset;
	t->plus = plus;
	task_dispatch_viewed(t, virtual_pool(t->handle));
}

void virtual_fini(struct fs *fs, struct handle *h)
{
	if (h->file != NULL)
		h->file->ops->free(h->file);
	if (h->vdir != NULL)
		h->vdir->ops->free(h->vdir);
	open_quota_set(fs->open_quota, &h->held, 0);
	mutex_destroy(&h->turns.lock);
}

enum err virtual_lock_id(struct fs *fs, const struct handle *h, bool shows, uint64_t *ret)
{
	(void)fs, (void)shows;
	bool shares = h->file != NULL && h->file->lock_id != 0;
	*ret = shares ? h->file->lock_id : nid_base(h->nid);
	return ERR_OK;
}

const struct kind_ops kind_virtual_dir = {
	.read = refuse_read,
	.write = refuse_write,
	.flush = flush_nothing,
	.sync = sync_store,
	.list = virtual_list,
	.release = virtual_release,
	.fini = virtual_fini,
};
