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
#include "fs/write/notes.h"
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
	h->append = (fi->flags & O_APPEND) != 0;
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

/* nodeless: the kernel's node is another one, of what the file was as a row or of a stage. */
static void open_file_as_it_is(struct fuse_call *c, const struct item *file, fuse_ino_t nid,
	bool nodeless, struct fuse_file_info *fi)
{
	struct handle *h = open_handle(c, HANDLE_FILE, nodeless ? nid_of(file) : nid, fi);
	if (h == NULL) {
		reply_err(c, ERR_NO_MEMORY);
		return;
	}
	h->nodeless = nodeless;
	/* Counted as open from now on: who removes it later lets us keep it.  It may have been
	 * removed just before, or be about to. */
	while (idset_count(c->fs->leaving, file->id) > 0)
		usleep(1000);
	struct item still = { 0 };
	enum err e = store_get(c->fs->store, NULL, file->id, WANT_ATTRS, &still);
	if (e == ERR_OK && nid_of(file) == h->nid && nid_of(&still) != h->nid)
		e = ERR_GONE; /* it became a row, and that was replaced */
	item_fini(&still);
	if (e != ERR_OK) {
		handle_unref(c->fs, h);
		reply_err(c, e == ERR_NOT_FOUND ? ERR_GONE : e);
		return;
	}
	notes_clear(c->fs, c->fs->notes, call_thread(c));
	fi->keep_cache = !nodeless;
	fi->direct_io = nodeless;
	fi->noflush = may_skip_flush(c->fs, fi);
	if (nodeless)
		notify_attributes(c->fs->notifier, nid);
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
		open_file_as_it_is(&j->call, &j->file, nid, false, &j->fi);
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

/* What would be written by another node than its own the kernel would not know of the file's. */
static void open_file(struct fuse_call *c, const struct item *file, fuse_ino_t nid, bool nodeless,
	struct fuse_file_info *fi)
{
	bool cuts = (fi->flags & O_TRUNC) != 0 && file->size != 0;
	if (nodeless && wants_write(fi)) {
		notes_clear(c->fs, c->fs->notes, call_thread(c));
		reply_err(c, ERR_GONE);
		return;
	}
	if (cuts && nid == nid_of(file) && handles_of_file(c->fs, nid) &&
		cut_behind_writes(c, file, fi))
		return;
	if (!cuts || cut_file(c, file->id))
		open_file_as_it_is(c, file, nid, nodeless, fi);
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

static void open_blob(struct fuse_call *c, const struct content *content, fuse_ino_t nid,
	struct fuse_file_info *fi, bool direct)
{
	if (is_throttled(c, &content->item, HEAT_READ, 1)) {
		contents_unpin(c->fs->contents, content);
		return;
	}
	struct handle *h = open_handle(c, HANDLE_ROW, nid, fi);
	if (h == NULL) {
		contents_unpin(c->fs->contents, content);
		reply_err(c, ERR_NO_MEMORY);
		return;
	}
	h->content = content;
	/* The content of a node never changes; but the empty file may become an ordinary one. */
	fi->direct_io = direct || content->item.kind == ITEM_FILE;
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
static void open_stage(struct fuse_call *c, struct stage *s, fuse_ino_t nid,
	struct fuse_file_info *fi, bool nodeless)
{
	enum err e = wants_write(fi) ? stage_admit(c->fs, s, &c->detail) : ERR_OK;
	if (e != ERR_OK) {
		refuse_throttled(c, e);
		stages_unref(c->fs, c->fs->stages, s);
		return;
	}
	struct handle *h = open_handle(c, HANDLE_STAGE, nid, fi);
	if (h == NULL) {
		stages_unref(c->fs, c->fs->stages, s);
		reply_err(c, ERR_NO_MEMORY);
		return;
	}
	h->stage = s;
	stage_opened(c->fs, s, fuse_req_ctx(c->req)->uid, (fi->flags & O_TRUNC) != 0);
	/* What was asked by its node before tells nothing any more that is on its way. */
	if (!nodeless && atomic_load(&s->asked))
		notify_attributes(c->fs->notifier, nid);
	if (wants_write(fi) && !nodeless && s->is.name == NAME_ROW)
		habits_overwrote(c->fs->habits, h->opener);
	h->nodeless = nodeless;
	fi->direct_io = nodeless;
	notes_clear(c->fs, c->fs->notes, h->opener);
	struct fs *fs = c->fs;
	bool cut = nodeless && (fi->flags & O_TRUNC) != 0;
	reply_open(c, h, fi);
	if (cut)
		notify_inode_soon(fs->notifier, nid); /* the kernel thinks it is empty now */
}

/* The stage's document, if it is to be kept.  False: the row is another one by now. */
static bool load_stage(struct fuse_call *c, struct stage *s, const struct fuse_file_info *fi)
{
	return (fi->flags & O_TRUNC) != 0 || stage_load(c->fs, s) == ERR_OK;
}

/* The last resort of a writer whose second try met a committed node again: a stage that no
 * node stands for. */
static void open_nodeless(
	struct fuse_call *c, struct item *item, fuse_ino_t nid, struct fuse_file_info *fi)
{
	char name[COMPONENT_MAX];
	struct resolved_name t = { 0 };
	struct stage *s = NULL;
	(void)item_component(item, name);
	enum err e = name_resolve(c->fs, nid_make(item->parent, 0), name, &t, NULL);
	if (e == ERR_OK)
		e = stage_new(c->fs, &t, item, &s);
	resolved_name_fini(&t);
	if (e != ERR_OK) {
		notes_clear(c->fs, c->fs->notes, call_thread(c));
		reply_err(c, e == ERR_NOT_FOUND ? ERR_GONE : e);
		return;
	}
	atomic_store(&s->exposed, true);
	stages_add(c->fs->stages, s, 0);
	open_stage(c, s, nid, fi, true);
}

/* A reader whose second try came to the node of somebody else's stage: what is committed, which
 * is another size, so directly. */
static void open_committed(
	struct fuse_call *c, const struct stage *s, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fs *fs = c->fs;
	struct resolved_name t = { 0 };
	struct item item = { 0 };
	const struct content *content = NULL;
	stages_expose(fs, fs->stages, s->dir_id, s->name);
	enum err e = name_resolve(fs, nid_make(s->dir_id, 0), s->name, &t, NULL);
	if (e == ERR_OK)
		e = name_item(fs, &t, WANT_BODY, &item);
	if (e == ERR_OK)
		e = contents_put(fs->contents, &item, &content);
	notes_clear(fs, fs->notes, call_thread(c));
	if (e == ERR_OK)
		open_blob(c, content, nid, fi, true);
	else
		reply_err(c, e);
	item_fini(&item);
	resolved_name_fini(&t);
}

/* The stage of the node has gone: who comes now (by a link in /proc/self/fd) is served as if he had
 * come to the row's own node, and that was out of date. */
static void open_left(struct fuse_call *c, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fs *fs = c->fs;
	struct item item = { 0 };
	const struct content *content = NULL;
	pid_t tid = call_thread(c);
	enum err e = nid_is_private_row(nid)
		? store_get(fs->store, NULL, nid_id(nid), WANT_BODY, &item)
		: ERR_NOT_FOUND;
	stages_held(fs->stages);
	if (notes_refuse(fs, fs->notes, tid, nid, e == ERR_OK ? &item : NULL, wanted(fi)) ==
		NOTE_NONE) {
		reply_again(c);
	} else if (e == ERR_OK && item.kind == ITEM_FILE) {
		open_file(c, &item, nid, true, fi);
	} else if (e == ERR_OK && wants_write(fi)) {
		open_nodeless(c, &item, nid, fi);
	} else {
		notes_clear(fs, fs->notes, tid);
		notify_attributes(fs->notifier, nid); /* of the row as it was at the look-up */
		if (e == ERR_OK)
			e = contents_put(fs->contents, &item, &content);
		if (e == ERR_OK)
			open_blob(c, content, nid, fi, true);
		else
			reply_err(c, e == ERR_NOT_FOUND ? ERR_GONE : e);
	}
	item_fini(&item);
}

static void open_private(struct fuse_call *c, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fs *fs = c->fs;
	struct stage *s = stages_get(fs->stages, nid);
	pid_t tid = call_thread(c);
	if (s == NULL) {
		open_left(c, nid, fi);
		return;
	}
	/* A reader was given it by a guess, or another thread was and he comes by a link, or the row is
	 * another one by now: there is none. */
	bool reads = !wants_write(fi) &&
		(notes_guessed(fs->notes, tid, s) ||
			(nid_is_private_row(nid) && !stage_is_open(s)));
	if (reads || !load_stage(c, s, fi)) {
		stages_unref(fs, fs->stages, s);
		open_left(c, nid, fi);
		return;
	}
	/* What notes need to know of the name. */
	struct item named = { .kind = ITEM_FILE,
		.class = CLASS_NAMED,
		.parent = s->dir_id,
		.key = span_make(s->name, s->name_len) };
	if (notes_expects(fs->notes, tid, s, nid)) {
		open_stage(c, s, nid, fi, false);
		return;
	}
	if (notes_refuse(fs, fs->notes, tid, nid, &named, wanted(fi)) == NOTE_NONE)
		reply_again(c);
	else if (!wants_write(fi))
		open_committed(c, s, nid, fi);
	else {
		open_stage(c, s, nid, fi, false);
		return;
	}
	stages_unref(fs, fs->stages, s);
}

/* A row's node that is not the current one, for a reader who will not find another: what it stands
 * for if that is on its way or somebody reads it, since size and bytes are of one version then; else
 * what is committed, directly. */
static void open_replaced(struct fuse_call *c, struct item *item, fuse_ino_t nid,
	enum note_state state, struct fuse_file_info *fi)
{
	struct fs *fs = c->fs;
	/* Replaced between this walk's lookup and now: its content is on the way.  A link may be
	 * much older than what replaced it. */
	service_wait_kept(fs->service);
	const struct content *content =
		state == NOTE_LINK ? NULL : contents_pin_old(fs->contents, nid);
	enum err e = ERR_OK;
	if (content == NULL)
		e = contents_look_or_spoil(fs->contents, nid, &content);
	bool direct = content == NULL || content_is_spoilt(content);
	if (e == ERR_OK && content == NULL) {
		contents_retire(fs->contents, nid);
		notify_attributes(fs->notifier, nid);
		e = contents_put(fs->contents, item, &content);
	}
	notes_clear(fs, fs->notes, call_thread(c));
	if (e == ERR_OK)
		open_blob(c, content, nid, fi, direct);
	else
		reply_err(c, e);
}

static void open_known(struct fuse_call *c, fuse_ino_t nid, struct fuse_file_info *fi);

static void open_current(
	struct fuse_call *c, struct item *item, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fs *fs = c->fs;
	const struct content *content = NULL;
	enum err e = contents_put(fs->contents, item, &content);
	if (e == ERR_OK && content_is_spoilt(content)) {
		contents_unpin(fs->contents, content);
		open_known(c, nid, fi); /* it was replaced since it was read */
		return;
	}
	notes_clear(fs, fs->notes, call_thread(c));
	if (e == ERR_OK)
		open_blob(c, content, nid, fi, false);
	else
		reply_err(c, e);
}

/* A committed node, or an ordinary file's.  Whoever is told to look again sees what replaced the
 * node: that is retired, since a listing under way may bring its name once more. */
static void open_item(
	struct fuse_call *c, struct item *item, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fs *fs = c->fs;
	pid_t tid = call_thread(c);
	if (trash_dir_has(item) && wants_write(fi)) {
		reply_err(c, refuse_in_trash(&c->detail));
		return;
	}
	/* An empty file that waits for its document goes when a row takes its place: who reads
	 * it holds its content, as with a row. */
	if (item->kind == ITEM_FILE && !item_is_draft(fs, item)) {
		enum note_state state = nid_of(item) == nid
			? NOTE_SECOND
			: notes_refuse(fs, fs->notes, tid, nid, item, NOTE_READ);
		const struct content *content = NULL;
		/* A row until a moment ago: the node holds its content. */
		if (state == NOTE_SECOND)
			open_file(c, item, nid, false, fi);
		else if (state == NOTE_NONE)
			reply_again(c);
		else if (!wants_write(fi) && (content = contents_look(fs->contents, nid)) != NULL)
			open_blob(c, content, nid, fi, content_is_spoilt(content));
		else
			open_file(c, item, nid, true, fi);
	} else if (item_is_dir(item->kind)) {
		reply_err(c, ERR_IS_A_DIRECTORY);
	} else if (wants_write(fi)) {
		/* Counted by open_stage(). */
		if (is_throttled(c, item, HEAT_CHANGED, 0))
			return;
		if (notes_refuse(fs, fs->notes, tid, nid, item, NOTE_WRITE) == NOTE_NONE) {
			if (nid_of(item) != nid)
				contents_retire(fs->contents, nid);
			reply_again(c);
		} else {
			open_nodeless(c, item, nid, fi);
		}
	} else if (nid_of(item) == nid) {
		open_current(c, item, nid, fi);
	} else {
		enum note_state state = notes_refuse(fs, fs->notes, tid, nid, item, NOTE_READ);
		if (state != NOTE_NONE) {
			open_replaced(c, item, nid, state, fi);
			return;
		}
		contents_retire(fs->contents, nid);
		reply_again(c);
	}
}

/* The row was removed or replaced after its name had been looked up.  If the second try comes here
 * too (a link in /proc/self/fd is walked without lookups), a reader gets it from the recent ones;
 * a writer gets a stage, and ESTALE at its close: the row went while it was being written. */
static void open_removed(struct fuse_call *c, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fs *fs = c->fs;
	pid_t tid = call_thread(c);
	/* Its name tells whether it is the second try: of the first one the node may be another. */
	service_wait_kept(fs->service);
	const struct content *content = contents_pin_old(fs->contents, nid);
	if (notes_refuse(fs, fs->notes, tid, nid, content != NULL ? &content->item : NULL,
		    wanted(fi)) == NOTE_NONE) {
		notes_unname(fs->notes, tid);
		contents_retire(fs->contents, nid);
		contents_unpin(fs->contents, content);
		reply_again(c);
		return;
	}
	if (content != NULL && !wants_write(fi)) {
		notes_clear(fs, fs->notes, tid);
		open_blob(c, content, nid, fi, content_is_spoilt(content));
		return;
	}
	struct item item = { 0 };
	if (content == NULL || item_copy(&item, &content->item) != ERR_OK) {
		notes_clear(fs, fs->notes, tid);
		reply_err(c, ERR_GONE);
	} else {
		open_nodeless(c, &item, nid, fi);
	}
	item_fini(&item);
	contents_unpin(fs->contents, content);
}

static void open_known(struct fuse_call *c, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct item item = { 0 };
	enum err e = store_get(c->fs->store, NULL, nid_id(nid), WANT_BODY, &item);
	if (e == ERR_NOT_FOUND)
		open_removed(c, nid, fi);
	else if (e != ERR_OK)
		reply_err(c, e);
	else
		open_item(c, &item, nid, fi);
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
			notes_clear(c.fs, c.fs->notes, call_thread(&c));
			open_blob(&c, content, nid, fi, false);
			return;
		}
	}
	open_known(&c, nid, fi);
}
