/* SPDX-License-Identifier: MIT
 * Requests for virtual nodes (fs/core/virtual.h): the room of the node serves them, as tasks.  What
 * a room does not give is refused with its words. */
#include "fs/requests/virtual.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static const struct vnode_ops *ops_of(const struct task *t)
{
	return vnode_ops_of(t->call.fs, t->nid);
}

/* ---- names ---- */

static void answer_name(struct task *t, enum err e, const struct ventry *entry)
{
	if (e == ERR_OK)
		reply_ventry(&t->call, entry);
	else
		virtual_refuse(&t->call, t->nid, e);
}

static void run_lookup(struct task *t)
{
	struct ventry entry = { 0 };
	enum err e = ops_of(t)->lookup(t->call.fs, t->nid, span_of(t->bytes), &t->vcall, &entry);
	answer_name(t, e, &entry);
}

static void run_mkdir(struct task *t)
{
	struct ventry entry = { 0 };
	enum err e = ops_of(t)->mkdir(t->call.fs, t->nid, span_of(t->bytes), &t->vcall, &entry);
	answer_name(t, e, &entry);
}

static void run_mknod(struct task *t)
{
	struct ventry entry = { 0 };
	enum err e = ops_of(t)->mknod(t->call.fs, t->nid, span_of(t->bytes), &t->vcall, &entry);
	answer_name(t, e, &entry);
}

static void run_rmdir(struct task *t)
{
	virtual_refuse(&t->call, t->nid,
		ops_of(t)->rmdir(t->call.fs, t->nid, span_of(t->bytes), &t->vcall));
}

static void run_unlink(struct task *t)
{
	virtual_refuse(&t->call, t->nid,
		ops_of(t)->unlink(t->call.fs, t->nid, span_of(t->bytes), &t->vcall));
}

static void run_rename(struct task *t)
{
	const struct vmove move = { .from = t->call.nid,
		.name = span_of(t->bytes),
		.to = t->call.to_nid,
		.to_name = span_of(t->call.to_name),
		.flags = (unsigned)t->offset };
	virtual_refuse(&t->call, t->nid, ops_of(t)->rename(t->call.fs, &move, &t->vcall));
}

static void virtual_lookup(struct fuse_call *c, uint64_t dir, const char *name)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, dir);
	struct task *t = NULL;
	if (ops->lookup == NULL)
		reply_err(c, ERR_NOT_A_DIRECTORY);
	else if ((t = task_named(c, run_lookup, dir, name)) != NULL)
		task_dispatch_viewed(t, ops->pool);
}

/* A change of a name; has: whether the room gives it. */
static void change_name(
	struct fuse_call *c, uint64_t dir, const char *name, bool has, void (*run)(struct task *t))
{
	struct task *t = NULL;
	if (!has)
		virtual_refuse_change(c, dir);
	else if ((t = task_named(c, run, dir, name)) != NULL)
		task_dispatch(t, VPOOL_CHANGE);
}

static void virtual_mkdir(struct fuse_call *c, uint64_t dir, const char *name, mode_t mode)
{
	(void)mode;
	change_name(c, dir, name, vnode_ops_of(c->fs, dir)->mkdir != NULL, run_mkdir);
}

static void virtual_mknod(struct fuse_call *c, uint64_t dir, const char *name)
{
	change_name(c, dir, name, vnode_ops_of(c->fs, dir)->mknod != NULL, run_mknod);
}

static void virtual_rmdir(struct fuse_call *c, uint64_t dir, const char *name)
{
	change_name(c, dir, name, vnode_ops_of(c->fs, dir)->rmdir != NULL, run_rmdir);
}

static void virtual_unlink(struct fuse_call *c, uint64_t dir, const char *name)
{
	change_name(c, dir, name, vnode_ops_of(c->fs, dir)->unlink != NULL, run_unlink);
}

static void virtual_rename(struct fuse_call *c, uint64_t dir, const char *name, uint64_t to,
	const char *to_name, unsigned flags)
{
	uint64_t nid = vnode_ops_of(c->fs, dir) != NULL ? dir : to;
	struct task *t = NULL;
	(void)to_name;
	if (vnode_ops_of(c->fs, nid)->rename == NULL) {
		virtual_refuse_change(c, nid);
	} else if ((t = task_named(c, run_rename, nid, name)) != NULL) {
		t->offset = flags;
		task_dispatch(t, VPOOL_CHANGE);
	}
}

/* ---- attributes ---- */

static void reply_sized(struct fuse_call *c, enum err e, uint64_t size)
{
	struct stat st;
	uint64_t nid = nid_base(c->nid);
	if (e == ERR_OK)
		e = vnode_ops_of(c->fs, nid)->stat(c->fs, nid, &st);
	if (e != ERR_OK) {
		virtual_refuse(c, nid, e);
		return;
	}
	if (size > 0) {
		st.st_size = (off_t)size;
		st.st_blocks = (st.st_size + 511) / 512;
	}
	reply_attr(c, &st, 0);
}

/* Opens what the node shows.  Streams that are kept make room for others. */
static enum err open_file(struct task *t, int flags, struct vfile **ret)
{
	struct fs *fs = t->call.fs;
	const struct vnode_ops *ops = vnode_ops_of(fs, t->nid);
	enum err e;
	do
		e = ops->open(fs, nid_base(t->nid), flags, &t->vcall, ret);
	while (e == ERR_THROTTLED && told_close(fs->told, true));
	return e;
}

/* Of the open file, else of what an open would give now. */
static void run_size(struct task *t)
{
	struct fs *fs = t->call.fs;
	uint64_t size = 0, until_us = 0;
	struct vfile *f = t->handle != NULL ? t->handle->file : t->file;
	enum err e = ERR_OK;
	task_begin_slice(t);
	/* The kernel asks for the modes before the open; nobody else would be told the same again. */
	if (f == NULL && fs->options.allow_other)
		t->file = told_take(fs->told, t->nid, call_told_to(&t->call), &until_us);
	if (f == NULL && t->file == NULL)
		e = open_file(t, O_RDONLY, &t->file);
	if (f == NULL)
		f = t->file;
	if (e == ERR_OK && f->ops->size != NULL)
		e = f->ops->size(f, &t->vcall, &size);
	t->again = e == ERR_CANCELLED && !task_given_up(t);
	if (t->again)
		return;
	if (t->file != NULL && e == ERR_OK && f->ops->resumes && !fs->shared)
		told_keep(fs->told, t->nid, call_told_to(&t->call), t->file, until_us);
	else if (t->file != NULL)
		t->file->ops->free(t->file);
	reply_sized(&t->call, e, size);
}

/* Where it is only written it has no size. */
static void virtual_attributes(struct fuse_call *c, struct node *n)
{
	struct fs *fs = c->fs;
	uint64_t nid = n->nid;
	struct handle *h = nid_has_moment(nid) ? handle_reading(fs->handles, nid) : NULL;
	struct task *t = NULL;
	if (!nid_has_moment(nid) || (h == NULL && handle_is_written(fs->handles, nid))) {
		reply_sized(c, ERR_OK, 0);
	} else if ((t = task_new(c, run_size, nid, NULL)) == NULL) {
		if (h != NULL)
			handle_unref(fs, h);
	} else {
		t->handle = h;
		task_dispatch_viewed(t, h != NULL ? virtual_pool(h) : vnode_ops_of(fs, nid)->pool);
	}
}

static void run_resize(struct task *t)
{
	struct node n = { .nid = t->nid };
	enum err e = ops_of(t)->resize(t->call.fs, t->nid, t->offset, &t->vcall);
	if (e == ERR_OK)
		virtual_attributes(&t->call, &n);
	else
		virtual_refuse(&t->call, t->nid, e);
}

static void virtual_set(struct fuse_call *c, struct node *n, const struct stat *st, int to_set)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, n->nid);
	bool cuts = (to_set & FUSE_SET_ATTR_SIZE) != 0;
	enum err e = ops->takes_attrs ? ERR_OK : ops->refusal;
	struct task *t = NULL;
	if (ops->cut != NULL && cuts && st->st_size == 0)
		e = ops->cut(c->fs, nid_base(n->nid));
	if (e != ERR_OK) {
		virtual_refuse(c, n->nid, e);
	} else if (cuts && ops->resize == NULL) {
		reply_sized(c, ERR_OK, 0);
	} else if (!cuts) {
		virtual_attributes(c, n);
	} else if ((t = task_new(c, run_resize, n->nid, NULL)) != NULL) {
		t->offset = (uint64_t)st->st_size;
		task_dispatch(t, VPOOL_CHANGE);
	}
}

static bool virtual_mode(struct fs *fs, uint64_t nid, mode_t *ret)
{
	struct stat st;
	enum err e = vnode_ops_of(fs, nid)->stat(fs, nid_base(nid), &st);
	*ret = st.st_mode;
	return e == ERR_OK;
}

/* ---- open ---- */

/* The kernel has given up the open meanwhile. */
static void drop_handle(struct fs *fs, struct handle *h)
{
	if (h->file != NULL)
		h->file->unopened = true;
	handle_unref(fs, h);
}

/* Takes f or d over. */
static void answer_open(struct task *t, enum err e, struct vfile *f, struct vdir *d)
{
	struct handle *h = NULL;
	if (e == ERR_OK && (h = virtual_handle(t, f, d)) == NULL)
		e = ERR_NO_MEMORY;
	if (e != ERR_OK) {
		virtual_refuse(&t->call, t->nid, e);
		return;
	}
	t->fi.fh = (uintptr_t)h;
	reply_elsewhere(&t->call);
	if (fuse_reply_open(t->call.req, &t->fi) == -ENOENT)
		drop_handle(t->call.fs, h);
}

static void run_open(struct task *t)
{
	struct fs *fs = t->call.fs;
	uint64_t until_us;
	bool reads = (t->fi.flags & O_ACCMODE) == O_RDONLY;
	struct vfile *f =
		reads ? told_take(fs->told, t->nid, call_told_to(&t->call), &until_us) : NULL;
	enum err e = f != NULL ? ERR_OK : open_file(t, t->fi.flags, &f);
	answer_open(t, e, f, NULL);
}

/* A descriptor is opened again, by its link in /proc: its node has its moment. */
static bool open_again(struct fuse_call *c, uint64_t nid, struct fuse_file_info *fi)
{
	bool reads = nid_has_moment(nid) && (fi->flags & O_ACCMODE) == O_RDONLY;
	struct handle *h = reads ? handle_reading(c->fs->handles, nid) : NULL;
	if (h == NULL)
		return false;
	fi->fh = (uintptr_t)h;
	fi->direct_io = true;
	reply_elsewhere(c);
	if (fuse_reply_open(c->req, fi) == -ENOENT)
		handle_unref(c->fs, h);
	return true;
}

static void virtual_open(struct fuse_call *c, struct node *n, struct fuse_file_info *fi)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, n->nid);
	struct task *t = NULL;
	if (open_again(c, n->nid, fi))
		return;
	if (ops->open == NULL)
		reply_err(c, ERR_IS_A_DIRECTORY);
	else if ((t = task_new(c, run_open, n->nid, fi)) != NULL)
		task_dispatch_viewed(t, ops->pool);
}

static void run_opendir(struct task *t)
{
	struct vdir *d = NULL;
	enum err e = ops_of(t)->opendir(t->call.fs, t->nid, &t->vcall, &d);
	answer_open(t, e, NULL, d);
}

static void virtual_opendir(struct fuse_call *c, uint64_t nid, struct fuse_file_info *fi)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, nid);
	struct task *t = NULL;
	if (ops->opendir == NULL)
		reply_err(c, ERR_NOT_A_DIRECTORY);
	else if ((t = task_new(c, run_opendir, nid, fi)) != NULL)
		task_dispatch_viewed(t, ops->pool);
}

static void run_create(struct task *t)
{
	struct vfile *f = NULL;
	struct handle *h = NULL;
	struct ventry entry = { 0 };
	enum err e = ops_of(t)->create(
		t->call.fs, t->nid, span_of(t->bytes), t->fi.flags, &t->vcall, &entry, &f);
	if (e != ERR_OK) {
		virtual_refuse(&t->call, t->nid, e);
		return;
	}
	t->nid = entry.nid;
	h = virtual_handle(t, f, NULL);
	if (h == NULL) {
		reply_err(&t->call, ERR_NO_MEMORY);
		return;
	}
	struct fuse_entry_param param = ventry_param(&t->call, &entry);
	t->fi.fh = (uintptr_t)h;
	reply_elsewhere(&t->call);
	if (fuse_reply_create(t->call.req, &param, &t->fi) == -ENOENT) {
		drop_handle(t->call.fs, h);
		vnode_forget(t->call.fs, entry.nid, 1);
	}
}

static void virtual_create(
	struct fuse_call *c, uint64_t dir, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	struct task *t = NULL;
	(void)mode;
	if (vnode_ops_of(c->fs, dir)->create == NULL) {
		virtual_refuse_change(c, dir);
	} else if ((t = task_named(c, run_create, dir, name)) != NULL) {
		t->fi = *fi;
		task_dispatch(t, VPOOL_CHANGE);
	}
}

const struct kind_ops kind_virtual = {
	.lookup = virtual_lookup,
	.create = virtual_create,
	.mkdir = virtual_mkdir,
	.mknod = virtual_mknod,
	.rmdir = virtual_rmdir,
	.unlink = virtual_unlink,
	.rename = virtual_rename,
	.opendir = virtual_opendir,
	.xattr_get = virtual_xattr_get,
	.xattr_set = virtual_xattr_set,
	.xattr_remove = virtual_xattr_remove,
	.meta_get = virtual_meta_get,
	.meta_set = virtual_meta_set,
	.xattr_names = virtual_xattr_names,
	.mode = virtual_mode,
	.open = virtual_open,
	.attributes = virtual_attributes,
	.set = virtual_set,
	.read = virtual_read,
	.write = virtual_write,
	.flush = virtual_flush,
	.sync = virtual_sync,
	.release = virtual_release,
	.lock_id = virtual_lock_id,
	.fini = virtual_fini,
};
