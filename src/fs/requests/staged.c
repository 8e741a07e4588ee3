/* SPDX-License-Identifier: MIT
 * KIND_STAGED: a staged write, which has a node of its own (fs/write/stage.h).  A request may come
 * by the node of one that has gone, or is another thread's: it is sent to look the name up once
 * more. */
#include "base/workers.h"
#include "fs/cache/notify.h"
#include "fs/requests/kinds.h"
#include "fs/requests/syncs.h"
#include "fs/write/speculation.h"

#include <fcntl.h>
#include <stdlib.h>

/* ---- open ---- */

/* Takes over one reference of the stage.  What it will commit is let in here, where shells
 * look, too. */
static void open_stage(struct fuse_call *c, struct stage *s, struct fuse_file_info *fi)
{
	enum err e = open_writes(fi) ? stage_admit(c->fs->service, s, &c->detail) : ERR_OK;
	if (e != ERR_OK) {
		refuse_throttled(c, e);
		stages_unref(c->fs, c->fs->stages, s);
		return;
	}
	struct handle *h = open_handle(c, KIND_STAGED, s->nid, fi);
	if (h == NULL) {
		stages_unref(c->fs, c->fs->stages, s);
		reply_err(c, ERR_NO_MEMORY);
		return;
	}
	h->stage = s;
	fi->direct_io = writes_directly(fi);
	stage_opened(c->fs, s, fuse_req_ctx(c->req)->uid, (fi->flags & O_TRUNC) != 0);
	if (open_writes(fi) && s->is.name == NAME_ITEM)
		speculation_overwrote(c->fs->speculation, h->opener);
	retries_clear(c->fs, c->fs->retries, h->opener);
	reply_open(c, h, fi);
}

/* The stage's document, if it is to be kept.  False: the row is another one by now. */
static bool is_loaded(struct fuse_call *c, struct stage *s, const struct fuse_file_info *fi)
{
	return (fi->flags & O_TRUNC) != 0 || stage_load(c->fs, s) == ERR_OK;
}

/* A look-up gave this thread the stage, or somebody has it open and the thread comes by a link in
 * /proc/self/fd.  All others look again: the stage has gone, is another thread's, was given to a
 * reader speculatively, or holds what the row was before. */
static void staged_open(struct fuse_call *c, struct node *n, struct fuse_file_info *fi)
{
	struct fs *fs = c->fs;
	struct stage *s = n->stage;
	pid_t tid = call_thread(c);
	enum retry_state state = RETRY_NONE;
	bool own = s != NULL && retries_expects(fs->retries, tid, s);
	bool speculative = own && !open_writes(fi) && retries_is_speculative(fs->retries, tid, s);
	open_ends_speculation(c, fi);
	bool opens = own && !speculative && is_loaded(c, s, fi);
	if (!opens) {
		state = retries_refuse(fs, fs->retries, tid, n->nid, NULL, open_what(fi));
		opens = state == RETRY_LINK && s != NULL && stage_is_open(s) && is_loaded(c, s, fi);
	}
	if (opens) {
		n->stage = NULL;
		open_stage(c, s, fi);
	} else {
		stages_held(fs->stages);
		refuse_old(c, state);
	}
}

/* ---- attributes ---- */

/* A speculative node stands for the row until a thread opens it (fs/write/speculation.h). */
static bool stands_for_row(const struct node *n)
{
	return nid_is_staged_row(n->nid) && !stage_is_open(n->stage);
}

/* Whether somebody has it open, or the thread's look-up was given it.  False: the request is
 * answered. */
static bool may_ask(struct fuse_call *c, const struct node *n)
{
	struct stage *s = n->stage;
	if (s != NULL && (stage_is_open(s) || retries_expects(c->fs->retries, call_thread(c), s)))
		return true;
	stages_held(c->fs->stages);
	reply_again(c);
	return false;
}

static void staged_attributes(struct fuse_call *c, struct node *n)
{
	struct stat st;
	if (!may_ask(c, n))
		return;
	if (stands_for_row(n)) {
		speculative_attributes(c, n);
		return;
	}
	stage_look(c->fs->store, n->stage);
	stage_stat(c->fs, n->stage, &st);
	reply_attr(c, &st, 0);
}

static void set_on_stage(struct fuse_call *c, struct stage *s, const struct stat *st, int to_set)
{
	struct attrs attrs;
	struct stat now;
	enum err e = ERR_OK;
	uint32_t mask = attrs_wanted(st, to_set, &attrs);
	if ((to_set & FUSE_SET_ATTR_SIZE) != 0)
		e = stage_truncate(c->fs, s, (uint64_t)st->st_size);
	if (e == ERR_OK && mask != 0)
		e = stage_set_attrs(c->fs, s, &attrs, mask);
	if (e != ERR_OK) {
		reply_err(c, e);
		return;
	}
	stage_stat(c->fs, s, &now);
	drop_stale_locked(c->fs->notifier, s);
	if (mask != 0)
		stages_attributes_set(c->fs, c->fs->stages, now.st_ino);
	reply_attr(c, &now, 0);
}

static void staged_set(struct fuse_call *c, struct node *n, const struct stat *st, int to_set)
{
	if (!may_ask(c, n))
		return;
	if (stands_for_row(n))
		speculative_set(c, n, st, to_set);
	else
		set_on_stage(c, n->stage, st, to_set);
}

/* ---- read and write ---- */

static void staged_read(struct fuse_call *c, struct handle *h, size_t size, off_t offset)
{
	struct buf out = BUF_INIT(LIMIT_DOCUMENT_BYTES);
	stage_read(h->stage, (uint64_t)offset, size, &out);
	if (buf_ok(&out))
		reply_bytes(c, out.data, out.len);
	else
		reply_err(c, ERR_NO_MEMORY);
	buf_fini(&out);
}

/* The kernel does it for writes into its cache, but not for direct ones. */
static void drop_set_ids(struct fuse_call *c, struct stage *s)
{
	struct stat st;
	mode_t both = S_ISGID | S_IXGRP, drop = S_ISUID;
	struct attrs attrs = ATTRS_UNSET;
	stage_stat(c->fs, s, &st);
	if ((st.st_mode & both) == both)
		drop |= S_ISGID;
	attrs.mode = MODE_SET(st.st_mode & 07777 & ~drop);
	if ((st.st_mode & drop) != 0)
		(void)stage_set_attrs(c->fs, s, &attrs, ATTR_MODE);
}

static void staged_write(struct fuse_call *c, struct handle *h, struct span bytes, off_t offset)
{
	if (c->uid != 0)
		drop_set_ids(c, h->stage);
	c->noted = true; /* by the stage */
	enum err e = stage_write(c->fs, h->stage, (uint64_t)offset, bytes);
	if (e == ERR_OK)
		reply_written(c, bytes.n);
	else
		reply_err(c, e);
}

/* ---- close ---- */

static void staged_flush(struct fuse_call *c, struct handle *h, const struct fuse_file_info *fi)
{
	if (!h->writes) {
		flush_nothing(c, h, fi);
		return;
	}
	c->noted = true; /* by the stage */
	enum err e = stage_flush(c->fs, h->stage, closes_for_opener(h, call_thread(c)));
	unlock_closed(c->fs, h, fi->lock_owner); /* the next holder finds what was written */
	if (e == ERR_OK)
		reply_after_commit(c, h->stage);
	else
		reply_err(c, e);
}

static void staged_close(struct fs *fs, struct handle *h)
{
	struct stale stale;
	stage_close(fs, h->stage);
	stage_take_stale(h->stage, &stale);
	if (stale.any)
		notify_name_soon(fs->notifier, stale.dir_nid, span_of(stale.name));
}

static void staged_abandon(struct fs *fs, struct handle *h)
{
	if (h->stage != NULL)
		stage_close(fs, h->stage);
}

static void staged_fini(struct fs *fs, struct handle *h)
{
	if (h->stage != NULL)
		stages_unref(fs, fs->stages, h->stage);
}

/* ---- fsync ---- */

struct fsync_job {
	struct job job; /* first */
	struct fuse_call call;
	struct stale stale;
};

/* How long the name is waited for: see reply_fsync(). */
#define FSYNC_NAME_MS 1000

static void run_fsync(struct job *job)
{
	struct fsync_job *j = (struct fsync_job *)job;
	notify_name_within(
		j->call.fs->notifier, j->stale.dir_nid, span_of(j->stale.name), FSYNC_NAME_MS);
	syncs_reply(&j->call);
	free(j);
}

/* The kernel holds the inode's lock.  By name only the writer comes to the node of a staged write,
 * so the holder of the directory's lock does not wait for the inode's: the name goes first, as at a
 * close.  But link(2) of the descriptor waits for the inode's lock and holds that of its new
 * directory: then the name goes after the reply. */
static void reply_fsync(struct fuse_call *c, const struct handle *h)
{
	struct fs *fs = c->fs;
	struct fsync_job *j = malloc(sizeof(*j));
	if (j != NULL) {
		*j = (struct fsync_job){ .job.run = run_fsync, .call = *c };
		stage_take_stale(h->stage, &j->stale);
		if (j->stale.any && workers_submit(fs->pools[VPOOL_CHANGE], &j->job))
			return;
		if (j->stale.any)
			notify_name_soon(fs->notifier, j->stale.dir_nid, span_of(j->stale.name));
		free(j);
	} else {
		drop_stale_locked(fs->notifier, h->stage);
	}
	syncs_reply(c);
}

static void staged_sync(struct fuse_call *c, struct handle *h)
{
	enum err e = stage_fsync(c->fs, h->stage);
	c->noted = e != ERR_OK; /* by the stage */
	if (e == ERR_OK)
		reply_fsync(c, h);
	else
		reply_err(c, e);
}

static enum err staged_lock_id(struct fs *fs, const struct handle *h, bool shows, uint64_t *ret)
{
	enum err e = shows ? stage_create_name(fs, h->stage) : ERR_OK;
	uint64_t id = stage_item(h->stage).id;
	*ret = id != 0 ? id : h->nid;
	return e;
}

const struct kind_ops kind_staged = {
	.open = staged_open,
	.attributes = staged_attributes,
	.set = staged_set,
	.read = staged_read,
	.write = staged_write,
	.flush = staged_flush,
	.sync = staged_sync,
	.close = staged_close,
	.release = release_now,
	.abandon = staged_abandon,
	.lock_id = staged_lock_id,
	.fini = staged_fini,
};
