/* SPDX-License-Identifier: MIT
 * open: which kind of handle a file gets. */
#include "base/workers.h"
#include "fs/cache/ahead.h"
#include "fs/cache/notify.h"
#include "fs/cache/pages.h"
#include "fs/core/idset.h"
#include "fs/core/nid.h"
#include "fs/requests/ops.h"
#include "fs/requests/refusal.h"
#include "fs/tree/trash_dir.h"
#include "fs/write/habits.h"
#include "service/core/admission.h"
#include "service/tree/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct handle *open_handle(
	const struct fuse_call *c, enum handle_kind kind, uint64_t nid, struct fuse_file_info *fi)
{
	struct handle *h = handle_new(c->fs, kind, nid, call_thread(c));
	if (h == NULL)
		return NULL;
	if ((fi->flags & O_ACCMODE) != O_RDONLY)
		handle_writes(c->fs, h);
	fi->fh = (uintptr_t)h;
	return h;
}

void close_handle(struct fs *fs, struct handle *h)
{
	struct stage *s = h->kind == HANDLE_STAGE ? h->stage : NULL;
	if (s != NULL) {
		struct stale stale;
		stage_close(fs, s);
		stage_take_stale(s, &stale);
		if (stale.any)
			notify_name_soon(fs->notifier, stale.dir_nid, span_of(stale.name));
	}
	handle_unref(fs, h);
}

/* The kernel may have given up on the request: then no release follows. */
static void reply_open(struct fuse_call *c, struct handle *h, struct fuse_file_info *fi)
{
	reply_elsewhere(c);
	if (fuse_reply_open(c->req, fi) == -ENOENT)
		close_handle(c->fs, h);
}

/* ---- kinds of open ---- */

static bool wants_write(const struct fuse_file_info *fi)
{
	return (fi->flags & O_ACCMODE) != O_RDONLY || (fi->flags & O_TRUNC) != 0;
}

static enum note_what wanted(const struct fuse_file_info *fi)
{
	return wants_write(fi) ? NOTE_WRITE : NOTE_READ;
}

/* False: it was answered. */
static bool cut_file(struct fuse_call *c, uint64_t id)
{
	struct item now = { 0 };
	enum err e = tree_file_resize(c->fs->service, id, 0, &now);
	item_fini(&now);
	if (e != ERR_OK)
		reply_err(c, e == ERR_INVALID_INPUT ? ERR_GONE : e); /* a row by now */
	return e == ERR_OK;
}

static void open_file_as_it_is(
	struct fuse_call *c, const struct item *file, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct handle *h = open_handle(c, HANDLE_FILE, nid, fi);
	if (h == NULL) {
		reply_err(c, ERR_NO_MEMORY);
		return;
	}
	/* Counted as open from now on: who removes it later lets us keep it.  It may have been
	 * removed just before, or be about to. */
	while (idset_count(c->fs->leaving, file->id) > 0)
		usleep(1000);
	struct item still = { 0 };
	enum err e = store_get(c->fs->store, NULL, file->id, WANT_ATTRS, &still);
	if (e == ERR_OK && nid_of(&still) != nid)
		e = ERR_GONE; /* it became a row, and that was replaced */
	item_fini(&still);
	if (e != ERR_OK) {
		handle_unref(c->fs, h);
		reply_err(c, e == ERR_NOT_FOUND ? ERR_GONE : e);
		return;
	}
	notes_clear(c->fs, c->fs->notes, call_thread(c));
	fi->keep_cache = 1;
	fi->noflush = may_skip_flush(c->fs, fi);
	reply_open(c, h, fi);
}

struct cut_job {
	struct job job; /* first */
	struct fuse_call call;
	struct item file; /* its id and edition */
	struct fuse_file_info fi;
};

static void run_cut(struct job *job)
{
	struct cut_job *j = (struct cut_job *)job;
	uint64_t nid = nid_of(&j->file);
	notify_inode_now(j->call.fs->notifier, nid);
	if (cut_file(&j->call, j->file.id))
		open_file_as_it_is(&j->call, &j->file, nid, &j->fi);
	free(j);
}

/* What was written by a mapping may be on its way: for truncate(2) the kernel waits until it has come,
 * but not for O_TRUNC, and the file would have bytes again.  False: it is not done. */
static bool cut_behind_writes(
	struct fuse_call *c, const struct item *file, const struct fuse_file_info *fi)
{
	struct cut_job *j = malloc(sizeof(*j));
	if (j == NULL)
		return false;
	*j = (struct cut_job){ .job.run = run_cut, .call = *c, .fi = *fi };
	j->file = (struct item){ .id = file->id, .edition = file->edition, .kind = ITEM_FILE };
	if (workers_submit(c->fs->lanes[VLANE_CHANGE], &j->job))
		return true;
	free(j);
	return false;
}

static void open_file(
	struct fuse_call *c, const struct item *file, fuse_ino_t nid, struct fuse_file_info *fi)
{
	bool cuts = (fi->flags & O_TRUNC) != 0 && file->size != 0;
	if (cuts && handles_of_file(c->fs, nid) && cut_behind_writes(c, file, fi))
		return;
	if (!cuts || cut_file(c, file->id))
		open_file_as_it_is(c, file, nid, fi);
}

static void refuse_throttled(struct fuse_call *c, enum err e)
{
	notes_clear(c->fs, c->fs->notes, call_thread(c));
	reply_err(c, e);
}

/* Whether the partition of a row is over its target (service/core/heat.h): then the request was
 * answered.  n 0: it is only asked. */
static bool is_throttled(struct fuse_call *c, const struct item *row, enum heat_kind kind, size_t n)
{
	if (row->kind != ITEM_ROW)
		return false;
	enum err e = admission_in_id(c->fs->service, row->parent, kind, n, &c->detail);
	if (e == ERR_OK)
		return false;
	refuse_throttled(c, e);
	return true;
}

/* Takes over one pin of the content.  The thread's walk ends here. */
static void open_blob(struct fuse_call *c, const struct content *content, struct fuse_file_info *fi)
{
	notes_clear(c->fs, c->fs->notes, call_thread(c));
	if (is_throttled(c, &content->item, HEAT_READ, 1)) {
		contents_unpin(c->fs->contents, content);
		return;
	}
	struct handle *h = open_handle(c, HANDLE_ROW, content->nid, fi);
	if (h == NULL) {
		contents_unpin(c->fs->contents, content);
		reply_err(c, ERR_NO_MEMORY);
		return;
	}
	h->content = content;
	/* The content of a node never changes; but the empty file may become an ordinary one. */
	fi->direct_io = content->item.kind == ITEM_FILE;
	fi->keep_cache = !fi->direct_io;
	fi->noflush = may_skip_flush(c->fs, fi);
	struct fs *fs = c->fs;
	ahead_opened(fs->ahead);
	bool given = !fi->direct_io && pages_give(fs, content);
	handle_ref(h);
	reply_open(c, h, fi);
	if (given)
		ahead_read(fs, &content->item);
	handle_unref(fs, h);
}

/* Takes over one reference of the stage.  What it will commit is let in here, where shells
 * look, too. */
static void open_stage(struct fuse_call *c, struct stage *s, struct fuse_file_info *fi)
{
	enum err e = wants_write(fi) ? stage_admit(c->fs, s, &c->detail) : ERR_OK;
	if (e != ERR_OK) {
		refuse_throttled(c, e);
		stages_unref(c->fs, c->fs->stages, s);
		return;
	}
	struct handle *h = open_handle(c, HANDLE_STAGE, s->nid, fi);
	if (h == NULL) {
		stages_unref(c->fs, c->fs->stages, s);
		reply_err(c, ERR_NO_MEMORY);
		return;
	}
	h->stage = s;
	stage_opened(c->fs, s, fuse_req_ctx(c->req)->uid, (fi->flags & O_TRUNC) != 0);
	if (wants_write(fi) && s->is.name == NAME_ITEM)
		habits_overwrote(c->fs->habits, h->opener);
	notes_clear(c->fs, c->fs->notes, h->opener);
	reply_open(c, h, fi);
}

/* The stage's document, if it is to be kept.  False: the row is another one by now. */
static bool load_stage(struct fuse_call *c, struct stage *s, const struct fuse_file_info *fi)
{
	return (fi->flags & O_TRUNC) != 0 || stage_load(c->fs, s) == ERR_OK;
}

/* A look-up gave this thread the stage, or somebody has it open and the thread comes by a link in
 * /proc/self/fd.  All others look again: the stage has gone, is another thread's, was given to a reader
 * by a guess, or holds what the row was before. */
static void open_private(struct fuse_call *c, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fs *fs = c->fs;
	struct stage *s = stages_get(fs->stages, nid);
	pid_t tid = call_thread(c);
	bool own = s != NULL && notes_expects(fs->notes, tid, s);
	bool guessed = own && !wants_write(fi) && notes_guessed(fs->notes, tid, s);
	if (own && !guessed && load_stage(c, s, fi)) {
		open_stage(c, s, fi);
		return;
	}
	enum note_state state = notes_refuse(fs, fs->notes, tid, nid, NULL, wanted(fi));
	if (state == NOTE_LINK && s != NULL && stage_is_open(s) && load_stage(c, s, fi)) {
		open_stage(c, s, fi);
		return;
	}
	stages_held(fs->stages);
	if (s != NULL)
		stages_unref(fs, fs->stages, s);
	refuse_old(c, state);
}

/* A writer needs a node of his own, which his next look-up gives him. */
static void open_to_write(
	struct fuse_call *c, const struct item *row, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fs *fs = c->fs;
	if (row != NULL && is_throttled(c, row, HEAT_CHANGED, 0)) /* counted by open_stage() */
		return;
	/* A listing under way may bring its name once more. */
	if (row == NULL || nid_of(row) != nid)
		contents_retire(fs->contents, nid);
	refuse_old(c, notes_refuse(fs, fs->notes, call_thread(c), nid, row, NOTE_WRITE));
}

/* now: the item of the node, of whatever version; NULL: it has gone. */
static void open_item(
	struct fuse_call *c, struct item *now, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fs *fs = c->fs;
	const struct content *content = NULL;
	bool current = now != NULL && nid_of(now) == nid;
	if (now != NULL && item_is_dir(now->kind)) {
		reply_err(c, ERR_IS_A_DIRECTORY);
	} else if (now != NULL && trash_dir_has(now) && wants_write(fi)) {
		reply_err(c, refuse_in_trash(&c->detail));
	} else if (current && now->kind == ITEM_FILE && !item_is_waiting(fs, now)) {
		open_file(c, now, nid, fi);
	} else if (wants_write(fi)) {
		open_to_write(c, now, nid, fi);
	} else if (!current) {
		content = old_version(c, nid, now, NOTE_READ);
	} else if (contents_put(fs->contents, now, &content) != ERR_OK) {
		reply_err(c, ERR_NO_MEMORY);
	}
	if (content != NULL)
		open_blob(c, content, fi);
}

static void open_known(struct fuse_call *c, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct item item = { 0 };
	enum err e = store_get(c->fs->store, NULL, nid_id(nid), WANT_BODY, &item);
	if (e == ERR_OK || e == ERR_NOT_FOUND)
		open_item(c, e == ERR_OK ? &item : NULL, nid, fi);
	else
		reply_err(c, e);
	item_fini(&item);
}

void op_open(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_OPEN, nid, NULL);
	if (!may_open(&c))
		return;
	if (vnode_ops_of(c.fs, nid) != NULL) {
		virtual_open(&c, nid, fi);
		return;
	}
	if (!wants_write(fi))
		habits_forget(c.fs->habits, call_thread(&c));
	if (nid_is_private(nid)) {
		open_private(&c, nid, fi);
		return;
	}
	/* Between a commit and its event the store is asked: who saw the new version by a look-up must
	 * not be given the old one by a name that a listing under way brought back. */
	if (!wants_write(fi) && !service_is_changing(c.fs->service)) {
		const struct content *content = contents_pin(c.fs->contents, nid);
		if (content != NULL) {
			open_blob(&c, content, fi);
			return;
		}
	}
	open_known(&c, nid, fi);
}
