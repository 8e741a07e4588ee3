/* SPDX-License-Identifier: MIT
 * lseek(2) to data and holes, and fallocate(2).  Only virtual files can have holes; all others are data
 * to their end. */
#include "fs/requests/task.h"
#include "fs/write/stage.h"

#include <unistd.h>

static void reply_place(struct fuse_call *c, enum err e, uint64_t place)
{
	c->noted = true; /* a question is no refusal */
	if (e != ERR_OK) {
		reply_err(c, e);
		return;
	}
	reply_elsewhere(c);
	fuse_reply_lseek(c->req, (off_t)place);
}

static void reply_dense(struct fuse_call *c, bool hole, uint64_t offset, uint64_t size)
{
	reply_place(c, offset < size ? ERR_OK : ERR_BEHIND_END, hole ? size : offset);
}

/* ---- virtual files ---- */

static enum err size_of_virtual(struct task *t, uint64_t *ret)
{
	struct vfile *f = t->handle->file;
	struct stat st;
	if (f->ops->size != NULL)
		return f->ops->size(f, &t->vcall, ret);
	enum err e = vnode_ops_of(t->call.fs, t->nid)->stat(t->call.fs, nid_base(t->nid), &st);
	*ret = e == ERR_OK ? (uint64_t)st.st_size : 0;
	return e;
}

static void run_seek(struct task *t)
{
	struct vfile *f = t->handle->file;
	bool hole = t->plus;
	uint64_t place = 0;
	enum err e = f->ops->seek != NULL ? f->ops->seek(f, hole, t->offset, &place)
					  : size_of_virtual(t, &place);
	if (f->ops->seek == NULL && e == ERR_OK)
		reply_dense(&t->call, hole, t->offset, place);
	else
		reply_place(&t->call, e, place);
}

static void seek_virtual(struct fuse_call *c, struct handle *h, bool hole, uint64_t offset)
{
	struct task *t = task_on_handle(c, run_seek, h, (struct span){ 0 });
	if (t == NULL)
		return;
	t->offset = offset;
	t->plus = hole;
	task_dispatch(t, h->file->ops->pool);
}

/* ---- all files ---- */

static enum err size_of(struct fs *fs, const struct handle *h, uint64_t *ret)
{
	struct item it = { 0 };
	struct stat st;
	const struct content *content = h->kind == KIND_STAGED ? NULL : h->content;
	if (h->kind == KIND_STAGED) {
		stage_stat(fs, h->stage, &st);
		*ret = (uint64_t)st.st_size;
		return ERR_OK;
	}
	enum err e = content != NULL ? ERR_OK
				     : store_get(fs->store, NULL, nid_id(h->nid), WANT_ATTRS, &it);
	*ret = content != NULL ? content->item.body.n : it.size;
	item_fini(&it);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

void op_lseek(fuse_req_t req, fuse_ino_t nid, off_t offset, int whence, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_OTHER, nid, NULL);
	struct handle *h = handle_of(fi);
	uint64_t size;
	handle_ref(h);
	if (whence != SEEK_DATA && whence != SEEK_HOLE) {
		reply_err(&c, ERR_INVALID_INPUT);
	} else if (h->kind == KIND_VIRTUAL) {
		seek_virtual(&c, h, whence == SEEK_HOLE, (uint64_t)offset);
	} else {
		enum err e = size_of(c.fs, h, &size);
		if (e == ERR_OK)
			reply_dense(&c, whence == SEEK_HOLE, (uint64_t)offset, size);
		else
			reply_place(&c, e, 0);
	}
	handle_unref(c.fs, h);
}

/* ---- fallocate ---- */

static void run_allocate(struct task *t)
{
	struct vfile *f = t->handle->file;
	f->noted = false;
	enum err e = f->ops->allocate(f, &t->vcall, t->fi.flags, t->offset, t->length);
	reply_err(&t->call, e);
}

void op_fallocate(
	fuse_req_t req, fuse_ino_t nid, int mode, off_t offset, off_t n, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_OTHER, nid, NULL);
	struct handle *h = handle_of(fi);
	struct task *t = NULL;
	handle_ref(h);
	c.opened = true;
	c.title = "fallocate";
	if (h->kind != KIND_VIRTUAL || h->file->ops->allocate == NULL) {
		c.noted = true;
		reply_err(&c, ERR_NOT_SUPPORTED);
	} else if ((t = task_on_handle(&c, run_allocate, h, (struct span){ 0 })) != NULL) {
		t->offset = (uint64_t)offset;
		t->length = (uint64_t)n;
		t->fi.flags = mode;
		task_dispatch(t, VPOOL_CHANGE);
	}
	handle_unref(c.fs, h);
}
