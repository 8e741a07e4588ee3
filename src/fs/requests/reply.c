/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "fs/cache/notify.h"
#include "fs/core/idset.h"
#include "fs/core/nid.h"
#include "fs/refused/reason.h"
#include "fs/requests/ops.h"
#include "fs/requests/refusal.h"
#include "fs/tree/open_quota.h"
#include "fs/tree/told.h"
#include "fs/virtual/stats.h"

#include <errno.h>

struct fuse_call call_begin_own(struct fs *fs, enum op op, const struct statx_request *request)
{
	atomic_fetch_add(&fs->in_flight, 1);
	return (struct fuse_call){
		.fs = fs,
		.unique = request->unique,
		.tid = request->tid,
		.uid = request->uid,
		.gid = request->gid,
		.op = op,
		.start_us = clock_mono_us(),
		.nid = request->nid,
	};
}

static bool op_changes(enum op op)
{
	return op == OP_SETATTR || op == OP_CREATE || op == OP_WRITE || op == OP_FLUSH ||
		op == OP_FSYNC || op == OP_MKDIR || op == OP_RMDIR || op == OP_UNLINK ||
		op == OP_RENAME;
}

struct fuse_call call_begin(fuse_req_t req, enum op op, uint64_t nid, const char *name)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct fuse_call c = call_begin_own(fuse_req_userdata(req), op,
		&(struct statx_request){
			.nid = nid, .tid = ctx->pid, .uid = ctx->uid, .gid = ctx->gid });
	c.req = req;
	c.name = name;
	call_works(&c);
	if (op_changes(op))
		told_forget(c.fs->told, c.tid);
	c.opened = op == OP_READ || op == OP_WRITE || op == OP_FLUSH || op == OP_FSYNC ||
		op == OP_READDIR || op == OP_READDIRPLUS || op == OP_RELEASE;
	return c;
}

pid_t call_thread(const struct fuse_call *c)
{
	return c->tid;
}

void call_done(struct fuse_call *c, int code)
{
	call_works(NULL);
	atomic_fetch_sub(&c->fs->in_flight, 1);
	stats_count(c->fs->service, c->op, clock_mono_us() - c->start_us, code);
}

static void reply_errno(struct fuse_call *c, int code)
{
	call_done(c, code);
	if (c->req != NULL)
		fuse_reply_err(c->req, code);
	else
		reply_statx_errno(c, code);
}

void note_refusal(struct fuse_call *c, enum err e, const char *rejected)
{
#define X(symbol_, name_) [OP_##symbol_] = name_,
	static const char *const calls[OP_COUNT_] = { OP_LIST(X) };
#undef X
	char component[COMPONENT_MAX];
	const char *text = refusal_text(e);
	const char *title = c->op == OP_FLUSH ? "close" : calls[c->op];
	struct refusal r = { .call = c->title != NULL ? c->title : title,
		.error = e,
		.detail = &c->detail,
		.rejected = rejected[0] != 0 ? rejected : NULL };
	if (c->detail.text[0] == 0 && text != NULL)
		(void)err_set(&c->detail, e, "%s", text);
	/* The line tells where a name should have come, but of damage what could not be moved. */
	bool twice = c->to_name != NULL;
	bool to_first = twice && e != ERR_CORRUPT;
	for (int i = 0; i < 1 + twice; i++) {
		bool to = to_first == (i == 0);
		refusal_place(
			c->fs, to ? c->to_nid : c->nid, to ? c->to_name : c->name, component, &r);
		r.quiet = i > 0;
		reasons_add(c->fs->reasons, &r);
	}
}

void reply_err(struct fuse_call *c, enum err e)
{
	int code = err_errno(e);
	if (!c->noted && refusal_is(e, c->opened))
		note_refusal(c, e, "");
	reply_errno(c, c->op == OP_FSYNC && code == EINVAL ? EIO : code);
}

void reply_again(struct fuse_call *c)
{
	reply_errno(c, ESTALE);
}

bool may_open(struct fuse_call *c)
{
	enum err e = open_quota_may_open(c->fs, fuse_req_ctx(c->req)->uid, &c->detail);
	if (e != ERR_OK)
		reply_err(c, e);
	return e == ERR_OK;
}

void reply_attr(struct fuse_call *c, const struct stat *st, double timeout)
{
	call_done(c, 0);
	if (c->req != NULL)
		fuse_reply_attr(c->req, st, timeout);
	else
		reply_statx(c, st, timeout);
}

void reply_node(struct fuse_call *c, uint64_t nid, const struct stat *st, double entry_timeout)
{
	struct fuse_entry_param e = { .ino = nid, .generation = 1, .attr = *st };
	e.attr_timeout = keep_seconds(c->fs);
	e.entry_timeout = c->in_set ? 0 : entry_timeout;
	call_done(c, 0);
	fuse_reply_entry(c->req, &e);
}

void reply_no_entry(struct fuse_call *c)
{
	struct fuse_entry_param e = { .entry_timeout = c->in_set ? 0 : keep_seconds(c->fs) };
	call_done(c, 0);
	fuse_reply_entry(c->req, &e);
}

/* What the kernel takes for the size of a file until somebody asks for it: it is never shown, and
 * sendfile(2) and the like read on to the end, which the kernel finds by a short read. */
#define SIZE_UNKNOWN ((off_t)1 << 62)

/* A node that nobody has open, or the one of which the thread has just been told. */
static uint64_t new_moment(struct fuse_call *c, uint64_t nid)
{
	struct fs *fs = c->fs;
	uint64_t known = told_node(fs->told, nid, call_told_to(c));
	while (known == 0) {
		uint64_t ret = nid_at_moment(nid, atomic_fetch_add(&fs->moments, 1));
		struct handle *h = handle_reading(fs->handles, ret);
		if (h == NULL)
			return ret;
		handle_unref(fs, h);
	}
	return known;
}

/* The kernel takes no more names in a directory that was removed, for as long as somebody is in it.  Where
 * the directory is there again under the same node, another generation gives it a new inode. */
static uint64_t generation(const struct fs *fs, uint64_t nid, mode_t mode)
{
	bool again = S_ISDIR(mode) && (nid & NID_CLASS_MASK) == NID_VIRTUAL;
	return 1 + (again ? (uint64_t)idset_count(fs->removals, nid) : 0);
}

struct fuse_entry_param ventry_param(struct fuse_call *c, const struct ventry *entry)
{
	struct fuse_entry_param e = { .ino = entry->nid,
		.generation = generation(c->fs, entry->nid, entry->st.st_mode),
		.attr = entry->st };
	if (entry->moment) {
		e.ino = new_moment(c, entry->nid);
		e.attr.st_size = SIZE_UNKNOWN;
	} else {
		e.attr_timeout = e.entry_timeout = entry->valid_s;
		if (entry->lasting)
			e.entry_timeout = CACHE_SECONDS;
	}
	return e;
}

void reply_ventry(struct fuse_call *c, const struct ventry *entry)
{
	struct fuse_entry_param e = ventry_param(c, entry);
	reply_elsewhere(c);
	if (fuse_reply_entry(c->req, &e) == -ENOENT) /* the kernel gave up on it */
		vnode_forget(c->fs, entry->nid, 1);
}

void reply_bytes(struct fuse_call *c, const char *p, size_t n)
{
	call_done(c, 0);
	fuse_reply_buf(c->req, p, n);
}

void reply_elsewhere(struct fuse_call *c)
{
	call_done(c, 0);
}

void reply_after_commit(struct fuse_call *c, struct stage *s)
{
	struct stale stale;
	stage_take_stale(s, &stale);
	if (!stale.any) {
		reply_err(c, ERR_OK);
		return;
	}
	reply_elsewhere(c);
	notify_name_then_reply(c->fs->notifier, stale.dir_nid, span_of(stale.name), c->req);
}

void drop_stale_locked(struct notifier *notifier, struct stage *s)
{
	struct stale stale;
	stage_take_stale(s, &stale);
	if (stale.any && stale.nid != 0) {
		if (stale.content)
			notify_old_node(notifier, stale.nid);
		else
			notify_attributes(notifier, stale.nid);
	}
	if (stale.any)
		notify_name_soon(notifier, stale.dir_nid, span_of(stale.name));
}

bool dir_page_add(
	void *arg, const char *name, uint64_t nid, const struct stat *st, int64_t next_offset)
{
	struct dir_page *p = arg;
	size_t n;
	if (p->plus) {
		struct fuse_entry_param e = {
			.ino = nid, .generation = generation(p->fs, nid, st->st_mode), .attr = *st
		};
		e.attr_timeout = p->keep_s;
		e.entry_timeout = p->in_set ? 0 : p->keep_s;
		n = fuse_add_direntry_plus(
			p->req, p->bytes + p->len, p->size - p->len, name, &e, next_offset);
	} else {
		n = fuse_add_direntry(
			p->req, p->bytes + p->len, p->size - p->len, name, st, next_offset);
	}
	if (n > p->size - p->len)
		return false;
	p->len += n;
	return true;
}
