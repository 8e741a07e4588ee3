/* SPDX-License-Identifier: MIT
 * Requests for virtual nodes (fs/core/virtual.h): the method runs in its lane, then the reply is
 * sent from there.  A request whose method is not inline is a task, which the workers own. */
#include "fs/core/virtual.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/workers.h"
#include "fs/cache/notify.h"
#include "fs/core/nid.h"
#include "fs/requests/kinds.h"
#include "fs/requests/refusal.h"
#include "fs/tree/control_names.h"
#include "fs/tree/held.h"
#include "fs/tree/told.h"
#include "fs/tree/viewer.h"
#include "fs/write/look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* How long a read works before others of its lane have a turn. */
#define SLICE_US 50000

struct task {
	struct job job; /* first; next: also of those that wait for the handle */
	struct caller vcall;
	struct viewer viewer;
	struct fuse_call call;
	void (*run)(struct task *t);
	enum vlane lane;
	uint64_t slice_end_us; /* 0: is not broken off for others */
	bool again;            /* it was, and goes on later */

	uint64_t nid;
	uint64_t to_nid; /* rename(2) */
	struct fuse_file_info fi;
	struct handle *handle; /* one reference, and its turn while it runs */
	uint64_t offset;
	size_t size;        /* to read; of bytes */
	bool plus;          /* readdirplus */
	bool fills_pages;   /* a read for the page cache: see read_file() */
	struct buf out;     /* what was read */
	struct vfile *file; /* of a node that nobody has open, while its size is looked for */
	char bytes[];       /* the name with its NUL, or what is written */
};

static bool given_up(const struct task *t)
{
	return atomic_load(&t->call.fs->stopping) ||
		(t->call.req != NULL && fuse_req_interrupted(t->call.req));
}

static bool is_interrupted(const struct caller *vcall)
{
	const struct task *t =
		(const struct task *)((const char *)vcall - offsetof(struct task, vcall));
	return given_up(t) ||
		(t->slice_end_us != 0 && clock_mono_us() > t->slice_end_us &&
			workers_wanted(t->call.fs->lanes[t->lane]));
}

/* ---- turns: one request of an open file at a time, and no thread waits for its turn ---- */

/* Whether it has its turn now; else it will get it. */
static bool take_turn(struct task *t)
{
	struct turns *turns = &t->handle->turns;
	mutex_lock(&turns->lock);
	bool mine = !turns->taken;
	turns->taken = true;
	if (!mine && turns->last != NULL)
		turns->last->next = &t->job;
	else if (!mine)
		turns->first = &t->job;
	if (!mine)
		turns->last = &t->job;
	mutex_unlock(&turns->lock);
	return mine;
}

/* The one whose turn it is now; NULL: nobody's. */
static struct task *pass_turn(struct turns *turns)
{
	mutex_lock(&turns->lock);
	struct job *next = turns->first;
	if (next != NULL)
		turns->first = next->next;
	else
		turns->taken = false;
	if (turns->first == NULL)
		turns->last = NULL;
	mutex_unlock(&turns->lock);
	return (struct task *)next;
}

/* What is to be run next: itself, or who waited for the handle.  No thread and no turn is kept for as
 * long as somebody holds a directory: he may wait for a file that the kernel holds for a write, which
 * waits for this thread or this turn. */
static struct task *run_one(struct task *t)
{
	struct fs *fs = t->call.fs;
	struct handle *h = t->handle;
	struct task *next = NULL;
	notify_limit_patience(true);
	t->run(t);
	notify_limit_patience(false);
	if (t->again) {
		t->again = false;
		return t;
	}
	if (h != NULL) {
		next = pass_turn(&h->turns);
		notify_limit_patience(true);
		handle_unref(fs, h); /* may be the last, and commit what no close decided */
		notify_limit_patience(false);
	}
	free(t);
	return next;
}

static bool submit(struct task *t)
{
	return t->lane != VLANE_INLINE && workers_submit(t->call.fs->lanes[t->lane], &t->job);
}

static void run_task(struct job *job)
{
	struct task *t = (struct task *)job;
	do
		t = run_one(t);
	while (t != NULL && !submit(t));
}

/* The lanes take what comes until the request loop is over. */
static void dispatch(struct task *t, enum vlane lane)
{
	t->lane = lane;
	if (t->handle != NULL && !take_turn(t))
		return;
	if (!submit(t))
		run_task(&t->job);
}

/* For methods that ask who sees what; modes hold where the kernel checks them. */
static void dispatch_viewed(struct task *t, enum vlane lane)
{
	const struct fuse_call *c = &t->call;
	if (c->fs->options.allow_other && t->vcall.uid != 0) {
		viewer_init(&t->viewer, c->fs, t->vcall.uid, t->vcall.gid, call_thread(c));
		t->vcall.viewer = &t->viewer;
	}
	dispatch(t, lane);
}

/* NULL, and the reply is sent: memory is out. */
static struct task *new_task(const struct fuse_call *c, void (*run)(struct task *t), uint64_t nid,
	struct fuse_file_info *fi, const char *bytes, size_t n)
{
	struct task *t = calloc(1, sizeof(*t) + n);
	if (t == NULL) {
		struct fuse_call failed = *c;
		reply_err(&failed, ERR_NO_MEMORY);
		return NULL;
	}
	t->job.run = run_task;
	t->vcall = (struct caller){ .uid = c->uid, .gid = c->gid, .interrupted = is_interrupted };
	t->call = *c;
	t->run = run;
	t->nid = nid;
	t->size = n;
	if (fi != NULL)
		t->fi = *fi;
	if (n > 0)
		memcpy(t->bytes, bytes, n);
	if (c->name != NULL)
		t->call.name = t->bytes;
	t->vcall.detail = &t->call.detail;
	return t;
}

static struct task *new_named(
	const struct fuse_call *c, void (*run)(struct task *t), uint64_t dir, const char *name)
{
	return new_task(c, run, dir, NULL, name, strlen(name) + 1);
}

static struct task *new_on_handle(const struct fuse_call *c, void (*run)(struct task *t),
	struct handle *h, const char *bytes, size_t n)
{
	struct task *t = new_task(c, run, h->nid, NULL, bytes, n);
	if (t != NULL) {
		t->handle = h;
		handle_ref(t->handle);
		/* Why a snapshot is gone is noted when it goes. */
		t->call.opened = !nid_is_snapshot(t->nid);
	}
	return t;
}

static enum vlane lane_of_handle(const struct handle *h)
{
	return h->kind == KIND_VIRTUAL ? h->file->ops->lane : h->vdir->ops->lane;
}

/* With the words of the node's kind, where nobody has others. */
static void refuse(struct fuse_call *c, uint64_t nid, enum err e)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, nid);
	if (e == ops->refusal && c->detail.text[0] == 0)
		(void)err_set(&c->detail, e, "%s", ops->why);
	reply_err(c, e);
}

/* An error of a method of the open file. */
static void refuse_open(struct task *t, enum err e)
{
	t->call.noted = t->handle->file->noted;
	refuse(&t->call, t->nid, e);
}

/* ---- names ---- */

/* What the kernel takes for the size of a file until somebody asks for it: it is never shown, and
 * sendfile(2) and the like read on to the end, which the kernel finds by a short read. */
#define SIZE_UNKNOWN ((off_t)1 << 62)

static struct told_to told_to(const struct fuse_call *c)
{
	return (struct told_to){ c->tid, c->uid, c->gid };
}

/* A node that nobody has open, or the one of which the thread has just been told. */
static uint64_t new_moment(struct fuse_call *c, uint64_t nid)
{
	struct fs *fs = c->fs;
	uint64_t known = told_node(fs->told, nid, told_to(c));
	while (known == 0) {
		uint64_t ret = nid_at_moment(nid, atomic_fetch_add(&fs->moments, 1));
		struct handle *h = handle_reading(fs, ret);
		if (h == NULL)
			return ret;
		handle_unref(fs, h);
	}
	return known;
}

void reply_ventry(struct fuse_call *c, const struct ventry *entry)
{
	struct fuse_entry_param e = { .ino = entry->nid, .generation = 1, .attr = entry->st };
	if (entry->moment) {
		e.ino = new_moment(c, entry->nid);
		e.attr.st_size = SIZE_UNKNOWN;
	} else {
		e.attr_timeout = e.entry_timeout = entry->valid_s;
		if (entry->lasting)
			e.entry_timeout = CACHE_SECONDS;
	}
	reply_elsewhere(c);
	if (fuse_reply_entry(c->req, &e) == -ENOENT) /* the kernel gave up on it */
		virtual_forget(c->fs, entry->nid, 1);
}

static void answer_name(struct task *t, enum err e, const struct ventry *entry)
{
	if (e == ERR_OK)
		reply_ventry(&t->call, entry);
	else
		refuse(&t->call, t->nid, e);
}

static void run_lookup(struct task *t)
{
	struct ventry entry = { 0 };
	answer_name(t,
		vnode_ops_of(t->call.fs, t->nid)
			->lookup(t->call.fs, t->nid, span_of(t->bytes), &t->vcall, &entry),
		&entry);
}

static void run_mkdir(struct task *t)
{
	struct ventry entry = { 0 };
	answer_name(t,
		vnode_ops_of(t->call.fs, t->nid)
			->mkdir(t->call.fs, t->nid, span_of(t->bytes), &t->vcall, &entry),
		&entry);
}

static void run_rmdir(struct task *t)
{
	refuse(&t->call, t->nid,
		vnode_ops_of(t->call.fs, t->nid)
			->rmdir(t->call.fs, t->nid, span_of(t->bytes), &t->vcall));
}

void virtual_lookup(struct fuse_call *c, uint64_t dir, const char *name)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, dir);
	struct task *t = NULL;
	if (ops->lookup == NULL)
		reply_err(c, ERR_NOT_A_DIRECTORY);
	else if ((t = new_named(c, run_lookup, dir, name)) != NULL)
		dispatch_viewed(t, ops->lane);
}

void virtual_mkdir(struct fuse_call *c, uint64_t dir, const char *name)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, dir);
	struct task *t = NULL;
	if (ops->mkdir == NULL)
		refuse(c, dir, ops->refusal);
	else if ((t = new_named(c, run_mkdir, dir, name)) != NULL)
		dispatch(t, VLANE_CHANGE);
}

void virtual_rmdir(struct fuse_call *c, uint64_t dir, const char *name)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, dir);
	struct task *t = NULL;
	if (ops->rmdir == NULL)
		refuse(c, dir, ops->refusal);
	else if ((t = new_named(c, run_rmdir, dir, name)) != NULL)
		dispatch(t, VLANE_CHANGE);
}

/* The item that is renamed onto the node. */
static enum err take_file(struct task *t, struct resolved_name *from, struct item *file)
{
	struct fs *fs = t->call.fs;
	enum err e = name_resolve(fs, t->nid, t->bytes, from, NULL);
	if (name_means_nothing(e))
		return ERR_NOT_FOUND;
	if (e == ERR_OK && from->control != 0)
		return refuse_control(&t->call.detail);
	if (e == ERR_OK)
		e = name_look(fs, from, WANT_ATTRS, file);
	if (e == ERR_OK && file->kind != ITEM_FILE)
		return err_set(&t->call.detail, ERR_NOT_PERMITTED,
			"Only an ordinary file can be renamed onto the name: what is in it is "
			"imported.");
	if (e != ERR_OK)
		return e;
	e = vnode_ops_of(fs, t->to_nid)->replace(fs, t->to_nid, file, &t->vcall, &t->call.noted);
	const struct dentry at = name_dentry(from, ITEM_FILE);
	return e == ERR_OK ? file_unlink(fs, &at, file->id, &t->call.detail) : e;
}

/* The kernel keeps the file's node under the new name. */
static void run_replace(struct task *t)
{
	struct fs *fs = t->call.fs;
	struct resolved_name from = { 0 };
	struct item file = { 0 };
	notify_wait_for_none();
	enum err e = take_file(t, &from, &file);
	if (e == ERR_OK) {
		notify_old_node(fs->notifier, nid_of(&file));
		notify_name_soon(
			fs->notifier, nid_make(nid_id(t->to_nid), 0), span_of(t->call.to_name));
	}
	item_fini(&file);
	resolved_name_fini(&from);
	reply_err(&t->call, e);
}

bool virtual_replace(struct fuse_call *c, uint64_t dir, const char *name, uint64_t nid)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, nid);
	if (ops->replace == NULL)
		return false;
	struct task *t = new_named(c, run_replace, dir, name);
	if (t != NULL) {
		t->to_nid = nid;
		t->call.to_name = dir_control_name(nid).p;
		dispatch_viewed(t, VLANE_CHANGE);
	}
	return true;
}

void virtual_forget(struct fs *fs, uint64_t nid, uint64_t n)
{
	const struct vnode_ops *ops = vnode_ops_of(fs, nid);
	if (ops != NULL && ops->forget != NULL)
		ops->forget(fs, nid_base(nid), n);
}

bool virtual_refuses(struct fuse_call *c, uint64_t nid)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, nid);
	if (ops != NULL)
		refuse(c, nid, ops->refusal);
	return ops != NULL;
}

/* ---- attributes ---- */

static void reply_sized(struct fuse_call *c, enum err e, uint64_t size)
{
	struct stat st;
	uint64_t nid = nid_base(c->nid);
	if (e == ERR_OK)
		e = vnode_ops_of(c->fs, nid)->stat(c->fs, nid, &st);
	if (e != ERR_OK) {
		refuse(c, nid, e);
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
	t->slice_end_us = clock_mono_us() + SLICE_US;
	/* The kernel asks for the modes before the open; nobody else would be told the same again. */
	if (f == NULL && fs->options.allow_other)
		t->file = told_take(fs->told, t->nid, told_to(&t->call), &until_us);
	if (f == NULL && t->file == NULL)
		e = open_file(t, O_RDONLY, &t->file);
	if (f == NULL)
		f = t->file;
	if (e == ERR_OK && f->ops->size != NULL)
		e = f->ops->size(f, &t->vcall, &size);
	t->again = e == ERR_CANCELLED && !given_up(t);
	if (t->again)
		return;
	if (t->file != NULL && e == ERR_OK && f->ops->resumes)
		told_keep(fs->told, t->nid, told_to(&t->call), t->file, until_us);
	else if (t->file != NULL)
		t->file->ops->free(t->file);
	reply_sized(&t->call, e, size);
}

/* Where it is only written it has no size. */
static void virtual_attributes(struct fuse_call *c, struct node *n)
{
	struct fs *fs = c->fs;
	uint64_t nid = n->nid;
	struct handle *h = nid_has_moment(nid) ? handle_reading(fs, nid) : NULL;
	struct task *t = NULL;
	if (!nid_has_moment(nid) || (h == NULL && handle_is_written(fs, nid))) {
		reply_sized(c, ERR_OK, 0);
	} else if ((t = new_task(c, run_size, nid, NULL, NULL, 0)) == NULL) {
		if (h != NULL)
			handle_unref(fs, h);
	} else {
		t->handle = h;
		dispatch_viewed(t, h != NULL ? lane_of_handle(h) : vnode_ops_of(fs, nid)->lane);
	}
}

static void virtual_set(struct fuse_call *c, struct node *n, const struct stat *st, int to_set)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, n->nid);
	enum err e = ops->takes_attrs ? ERR_OK : ops->refusal;
	bool cuts = (to_set & FUSE_SET_ATTR_SIZE) != 0;
	if (ops->cut != NULL && cuts && st->st_size == 0)
		e = ops->cut(c->fs, nid_base(n->nid));
	if (e != ERR_OK)
		refuse(c, n->nid, e);
	else if (cuts)
		reply_sized(c, ERR_OK, 0);
	else
		virtual_attributes(c, n);
}

enum err virtual_xattr_get(struct fs *fs, uint64_t nid, const char *name, struct buf *out)
{
	const struct vnode_ops *ops = vnode_ops_of(fs, nid);
	return ops->xattr_get != NULL ? ops->xattr_get(fs, nid_base(nid), name, out)
				      : ERR_NO_ATTRIBUTE;
}

void virtual_setxattr(struct fuse_call *c, uint64_t nid, const char *name, struct span value)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, nid);
	refuse(c, nid,
		ops->xattr_set != NULL ? ops->xattr_set(c->fs, nid_base(nid), name, value)
				       : ops->refusal);
}

/* ---- open and close ---- */

static void count_held(struct fs *fs, struct handle *h)
{
	if (h->file->ops->holds != NULL)
		held_set(fs, &h->held, h->file->ops->holds(h->file));
}

static void answer_open(struct task *t, struct handle *h)
{
	t->fi.fh = (uintptr_t)h;
	reply_elsewhere(&t->call);
	if (fuse_reply_open(t->call.req, &t->fi) == -ENOENT)
		handle_unref(t->call.fs, h);
}

static void run_open(struct task *t)
{
	struct fs *fs = t->call.fs;
	uint64_t until_us;
	bool reads = (t->fi.flags & O_ACCMODE) == O_RDONLY;
	struct vfile *f = reads ? told_take(fs->told, t->nid, told_to(&t->call), &until_us) : NULL;
	struct handle *h = NULL;
	enum err e = f != NULL ? ERR_OK : open_file(t, t->fi.flags, &f);
	if (e == ERR_OK)
		h = handle_new(fs, KIND_VIRTUAL, t->nid, call_thread(&t->call));
	if (e == ERR_OK && h == NULL) {
		f->ops->free(f);
		e = ERR_NO_MEMORY;
	}
	if (e != ERR_OK) {
		refuse(&t->call, t->nid, e);
		return;
	}
	mutex_init(&h->turns.lock, RANK_TURNS);
	if (!reads)
		handle_writes(fs, h);
	h->file = f;
	count_held(fs, h);
	handle_ready(fs, h);
	t->fi.direct_io = !f->immutable;
	t->fi.keep_cache = f->immutable;
	t->fi.noflush = f->ops->close == NULL && may_skip_flush(fs, &t->fi);
	answer_open(t, h);
}

/* A descriptor is opened again, by its link in /proc: its node has its moment. */
static bool open_again(struct fuse_call *c, uint64_t nid, struct fuse_file_info *fi)
{
	bool reads = nid_has_moment(nid) && (fi->flags & O_ACCMODE) == O_RDONLY;
	struct handle *h = reads ? handle_reading(c->fs, nid) : NULL;
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
	else if ((t = new_task(c, run_open, n->nid, fi, NULL, 0)) != NULL)
		dispatch_viewed(t, ops->lane);
}

static void run_opendir(struct task *t)
{
	struct fs *fs = t->call.fs;
	struct vdir *d = NULL;
	struct handle *h = NULL;
	enum err e = vnode_ops_of(t->call.fs, t->nid)->opendir(fs, t->nid, &t->vcall, &d);
	if (e == ERR_OK)
		h = handle_new(fs, KIND_VIRTUAL_DIR, t->nid, call_thread(&t->call));
	if (e == ERR_OK && h == NULL) {
		d->ops->free(d);
		e = ERR_NO_MEMORY;
	}
	if (e != ERR_OK) {
		reply_err(&t->call, e);
		return;
	}
	mutex_init(&h->turns.lock, RANK_TURNS);
	h->vdir = d;
	answer_open(t, h);
}

void virtual_opendir(struct fuse_call *c, uint64_t nid, struct fuse_file_info *fi)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, nid);
	struct task *t = NULL;
	if (ops->opendir == NULL)
		reply_err(c, ERR_NOT_A_DIRECTORY);
	else if ((t = new_task(c, run_opendir, nid, fi, NULL, 0)) != NULL)
		dispatch_viewed(t, ops->lane);
}

static void run_release(struct task *t)
{
	release_now(&t->call, handle_of(&t->fi));
}

static void virtual_release(struct fuse_call *c, struct handle *h)
{
	struct fuse_file_info fi = { .fh = (uintptr_t)h };
	struct task *t = new_task(c, run_release, h->nid, &fi, NULL, 0);
	if (t != NULL)
		dispatch(t, lane_of_handle(h));
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

/* The kernel reads ahead before it knows where the end is.  It takes an answer without bytes for the
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
		t->slice_end_us = clock_mono_us() + SLICE_US;
	f->noted = false;
	enum err e = read_file(t);
	count_held(t->call.fs, t->handle);
	t->again = e == ERR_CANCELLED && f->ops->resumes && !given_up(t);
	if (t->again)
		return;
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

static void virtual_read(struct fuse_call *c, struct handle *h, size_t size, off_t offset)
{
	struct task *t = new_on_handle(c, run_read, h, NULL, 0);
	if (t == NULL)
		return;
	t->size = size;
	t->offset = (uint64_t)offset;
	t->out = BUF_INIT(size);
	t->fills_pages = c->fills_pages;
	dispatch(t, lane_of_handle(t->handle));
}

static void run_write(struct task *t)
{
	struct vfile *f = t->handle->file;
	f->noted = false;
	enum err e = f->ops->write != NULL
		? f->ops->write(f, &t->vcall, t->offset, span_make(t->bytes, t->size))
		: ERR_NOT_PERMITTED;
	count_held(t->call.fs, t->handle);
	if (e != ERR_OK) {
		refuse_open(t, e);
		return;
	}
	reply_elsewhere(&t->call);
	fuse_reply_write(t->call.req, t->size);
}

static void virtual_write(struct fuse_call *c, struct handle *h, struct span bytes, off_t offset)
{
	struct task *t = new_on_handle(c, run_write, h, bytes.p, bytes.n);
	if (t == NULL)
		return;
	t->offset = (uint64_t)offset;
	dispatch(t, lane_of_handle(t->handle));
}

static void run_close(struct task *t)
{
	struct vfile *f = t->handle->file;
	f->noted = false;
	enum err e = f->ops->close(f, &t->vcall);
	count_held(t->call.fs, t->handle);
	unlock_closed(t->call.fs, t->handle, t->fi.lock_owner);
	if (e != ERR_OK || !notify_ran_out()) {
		refuse_open(t, e);
		return;
	}
	reply_elsewhere(&t->call);
	notify_then_reply(t->call.fs->notifier, t->call.req);
}

static void virtual_flush(struct fuse_call *c, struct handle *h, const struct fuse_file_info *fi)
{
	struct task *t = NULL;
	if (!h->writes || h->file->ops->close == NULL || !closes_for_opener(h, call_thread(c))) {
		flush_nothing(c, h, fi);
	} else if ((t = new_on_handle(c, run_close, h, NULL, 0)) != NULL) {
		t->fi.lock_owner = fi->lock_owner;
		dispatch(t, lane_of_handle(h));
	}
}

static void run_sync(struct task *t)
{
	struct vfile *f = t->handle->file;
	f->noted = false;
	refuse_open(t, f->ops->sync(f, &t->vcall));
}

static void virtual_sync(struct fuse_call *c, struct handle *h)
{
	struct task *t = NULL;
	if (h->file->ops->sync == NULL)
		reply_err(c, store_sync(c->fs->store));
	else if ((t = new_on_handle(c, run_sync, h, NULL, 0)) != NULL)
		dispatch(t, lane_of_handle(h));
}

/* ---- directories ---- */

static void run_readdir(struct task *t)
{
	struct vdir *d = t->handle->vdir;
	struct dir_page p = { .req = t->call.req, .size = t->size, .plus = t->plus };
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
	struct task *t = new_on_handle(c, run_readdir, h, NULL, 0);
	if (t == NULL)
		return;
	t->size = size;
	t->offset = (uint64_t)offset;
	t->plus = plus;
	dispatch_viewed(t, lane_of_handle(t->handle));
}

static void virtual_fini(struct fs *fs, struct handle *h)
{
	if (h->file != NULL)
		h->file->ops->free(h->file);
	if (h->vdir != NULL)
		h->vdir->ops->free(h->vdir);
	held_set(fs, &h->held, 0);
	mutex_destroy(&h->turns.lock);
}

const struct kind_ops kind_virtual = {
	.open = virtual_open,
	.attributes = virtual_attributes,
	.set = virtual_set,
	.read = virtual_read,
	.write = virtual_write,
	.flush = virtual_flush,
	.sync = virtual_sync,
	.release = virtual_release,
	.fini = virtual_fini,
};

const struct kind_ops kind_virtual_dir = {
	.read = refuse_read,
	.write = refuse_write,
	.flush = flush_nothing,
	.sync = sync_store,
	.list = virtual_list,
	.release = virtual_release,
	.fini = virtual_fini,
};
