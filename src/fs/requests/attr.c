/* SPDX-License-Identifier: MIT
 * getattr, access and setattr. */
#include "fs/tree/attr.h"

#include "fs/cache/notify.h"
#include "fs/core/idset.h"
#include "fs/core/nid.h"
#include "fs/requests/ops.h"
#include "fs/requests/refusal.h"
#include "fs/tree/trash_dir.h"
#include "fs/write/habits.h"
#include "fs/write/notes.h"
#include "service/tree/tree.h"

#include <errno.h>
#include <unistd.h>

/* Nobody had it pinned.  Who opened it when it was no row yet keeps what it is from the moment that
 * this is kept. */
static const struct content *replaced_content(struct fs *fs, uint64_t nid, const struct item *row)
{
	bool open = handles_of_file(fs, nid);
	if (row == NULL ? !open : row->kind != ITEM_ROW)
		return NULL;
	service_wait_kept(fs->service);
	return open ? contents_pin_old(fs->contents, nid) : contents_look(fs->contents, nid);
}

/* Size and times of the content, for the kernel cuts or fills what it has of a node by the size;
 * mode and owner of the row that lives, which is the same file.  NULL: none lives. */
static void shown_attributes(const struct fs *fs, const struct content *content,
	const struct item *row, struct stat *ret)
{
	struct item shown = content->item; /* borrowed */
	if (row != NULL) {
		shown.attrs.mode = row->attrs.mode;
		shown.attrs.uid = row->attrs.uid;
		shown.attrs.gid = row->attrs.gid;
	}
	attr_of_item(fs, &shown, ret);
}

/* Of a row that was replaced or removed, while somebody holds it, or may in a moment. */
static bool old_attributes(struct fs *fs, uint64_t nid, const struct item *row, struct stat *ret)
{
	const struct content *content = contents_look(fs->contents, nid);
	if (content == NULL)
		content = replaced_content(fs, nid, row);
	if (content == NULL)
		return false;
	shown_attributes(fs, content, row, ret);
	if (row == NULL)
		ret->st_nlink = 0;
	contents_unpin(fs->contents, content);
	return true;
}

/* Of an old version that nobody has open: those of the row, since whoever asks came by its name, or
 * has a descriptor without an open.  But what its thread was sent to look for and has found is its
 * own for a moment. */
static enum err row_attributes(
	struct fs *fs, uint64_t nid, const struct item *row, struct stat *ret)
{
	const struct content *content =
		notes_await(fs->notes, nid) ? contents_pin_old(fs->contents, nid) : NULL;
	enum err e = content != NULL ? ERR_OK : contents_look_or_spoil(fs->contents, nid, &content);
	if (e == ERR_OK && content != NULL)
		shown_attributes(fs, content, row, ret);
	else if (e == ERR_OK)
		attr_of_item(fs, row, ret);
	contents_unpin(fs->contents, content);
	return e;
}

/* Whether what is asked of a stage's node is about the row that it was made for: nobody has it open
 * (fs/write/habits.h).  False: *ret is the stage, or NULL where nothing is known of it. */
static bool stands_for_row(struct fuse_call *c, uint64_t nid, struct stage **ret)
{
	struct fs *fs = c->fs;
	struct stage *s = stages_get(fs->stages, nid);
	*ret = s;
	if (!nid_is_private_row(nid))
		return false;
	/* Whoever asks may hear of the row's size when the stage has been opened: see open_stage().
	 * Who has it from a look-up of his own hears it before he opens it. */
	if (s == NULL)
		stages_held(fs->stages);
	else if (!notes_expects(fs->notes, call_thread(c), s, nid))
		atomic_store(&s->asked, true);
	if (s != NULL && stage_is_open(s))
		return false;
	if (s != NULL)
		stages_unref(fs, fs->stages, s);
	return true;
}

/* Of a node that tells nothing any more: what somebody reads by it all the same.  row: the one that
 * lives, NULL: none does, or it is not known.  False: nobody does. */
static bool held_attributes(
	struct fs *fs, uint64_t nid, const struct item *row, bool removed, struct stat *ret)
{
	const struct content *content = handles_look(fs, nid);
	if (content == NULL)
		return false;
	shown_attributes(fs, content, row, ret);
	if (removed)
		ret->st_nlink = 0;
	contents_unpin(fs->contents, content);
	return true;
}

/* What the node stood for has gone.  A name is walked once more then; if that finds it again, and it
 * goes again before this is asked, it is shown as it was found, since it was there meanwhile.
 * set: attributes were to be set.  A row's went with it, but not those of an empty file, which may
 * have become a row. */
static void reply_gone(struct fuse_call *c, uint64_t nid, bool set)
{
	struct fs *fs = c->fs;
	pid_t tid = call_thread(c);
	struct stat st;
	service_wait_kept(fs->service);
	const struct content *content = contents_pin_old(fs->contents, nid);
	if (notes_refuse(fs, fs->notes, tid, nid, content != NULL ? &content->item : NULL,
		    NOTE_STAT) == NOTE_SECOND &&
		content != NULL && (!set || content->item.kind == ITEM_ROW)) {
		notes_clear(fs, fs->notes, tid);
		attr_of_item(fs, &content->item, &st);
		st.st_nlink = 0;
		reply_attr(c, &st, 0);
	} else {
		reply_again(c);
	}
	contents_unpin(fs->contents, content);
}

static void answer_getattr(struct fuse_call *c, uint64_t nid)
{
	struct stat st;
	if (vnode_ops_of(c->fs, nid) != NULL) {
		virtual_getattr(c, nid);
		return;
	}
	struct stage *s = NULL;
	if (nid_is_private(nid) && !stands_for_row(c, nid, &s)) {
		if (s == NULL) {
			if (held_attributes(c->fs, nid, NULL, false, &st))
				reply_attr(c, &st, 0);
			else
				reply_again(c);
			return;
		}
		stage_look(c->fs, s);
		stage_stat(c->fs, s, &st);
		reply_attr(c, &st, 0);
		stages_unref(c->fs, c->fs->stages, s);
		return;
	}
	struct item item = { 0 };
	enum err e = store_get(c->fs->store, NULL, nid_id(nid), WANT_ATTRS, &item);
	bool lasts = !nid_is_private(nid);
	uint64_t asked = nid;
	if (!lasts && e == ERR_OK)
		nid = nid_of(&item);
	bool current = e == ERR_OK && nid_of(&item) == nid;
	const struct item *row = e == ERR_OK ? &item : NULL;
	if (e != ERR_OK && e != ERR_NOT_FOUND) {
		reply_err(c, e);
	} else if ((!current && old_attributes(c->fs, nid, row, &st)) ||
		(asked != nid_of(&item) && held_attributes(c->fs, asked, row, row == NULL, &st))) {
		reply_attr(c, &st, 0);
	} else if (e == ERR_OK && current) {
		bool lasting = !attr_is_resizing(c->fs, &item) && lasts;
		attr_of_item(c->fs, &item, &st);
		reply_attr(c, &st, lasting ? CACHE_SECONDS : 0);
	} else if (e == ERR_OK && !handles_of_file(c->fs, asked)) {
		/* Who opened it while it was an ordinary file has pages of it, that end where
		 * it ended. */
		e = row_attributes(c->fs, nid, &item, &st);
		if (e == ERR_OK)
			reply_attr(c, &st, 0);
		else
			reply_err(c, e);
	} else if (e == ERR_NOT_FOUND) {
		reply_gone(c, nid, false);
	} else {
		reply_again(c);
	}
	item_fini(&item);
}

void op_getattr(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_GETATTR, nid, NULL);
	(void)fi;
	answer_getattr(&c, nid);
}

bool op_statx(struct fs *fs, const void *request, size_t n)
{
	struct statx_request r;
	if (!statx_is(request, n, &r))
		return false;
	struct fuse_call c = call_begin_own(fs, OP_GETATTR, r.nid, r.unique, r.tid);
	answer_getattr(&c, r.nid);
	return true;
}

/* ---- access ---- */

static bool may_run(struct fs *fs, uint64_t nid)
{
	struct stat st = { .st_mode = S_IFDIR };
	struct item item = { 0 };
	struct stage *s = nid_is_private(nid) ? stages_get(fs->stages, nid) : NULL;
	if (vnode_ops_of(fs, nid) != NULL) {
		(void)vnode_ops_of(fs, nid)->stat(fs, nid, &st);
	} else if (s != NULL) {
		stage_stat(fs, s, &st);
		stages_unref(fs, fs->stages, s);
	} else if (store_get(fs->store, NULL, nid_id(nid), WANT_ATTRS, &item) == ERR_OK) {
		attr_of_item(fs, &item, &st);
		item_fini(&item);
	}
	return S_ISDIR(st.st_mode) || (st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0;
}

/* With allow_other the kernel judges by the modes and does not ask.  Without it the one who is
 * let in may all but what execve(2) refuses. */
void op_access(fuse_req_t req, fuse_ino_t nid, int mask)
{
	struct fuse_call c = call_begin(req, OP_GETATTR, nid, NULL);
	c.noted = true; /* a question is no refusal */
	reply_err(&c, (mask & X_OK) != 0 && !may_run(c.fs, nid) ? ERR_ACCESS : ERR_OK);
}

/* ---- setattr ---- */

static uint32_t wanted_attrs(const struct stat *st, int to_set, struct attrs *ret)
{
	uint32_t mask = 0;
	*ret = ATTRS_UNSET;
	if ((to_set & FUSE_SET_ATTR_MODE) != 0) {
		ret->mode = MODE_SET(st->st_mode & 07777);
		mask |= ATTR_MODE;
	}
	if ((to_set & FUSE_SET_ATTR_UID) != 0) {
		ret->uid = st->st_uid;
		mask |= ATTR_UID;
	}
	if ((to_set & FUSE_SET_ATTR_GID) != 0) {
		ret->gid = st->st_gid;
		mask |= ATTR_GID;
	}
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if ((to_set & FUSE_SET_ATTR_MTIME_NOW) != 0)
		ret->mtime_ns = attr_unix_ns(now);
	else if ((to_set & FUSE_SET_ATTR_MTIME) != 0)
		ret->mtime_ns = attr_unix_ns(st->st_mtim);
	if (ret->mtime_ns != TIME_UNSET)
		mask |= ATTR_MTIME;
	/* The access time is not kept; that it was set is. */
	if (mask != 0 || (to_set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW)) != 0) {
		ret->ctime_ns = attr_unix_ns(now);
		mask |= ATTR_CTIME;
	}
	return mask;
}

/* The row may be replaced while this runs.  The attributes are the file's, whichever version
 * they meet; but the answer is about the node, so its size must not be the new version's. */
static void reply_set(struct fuse_call *c, uint64_t nid, const struct item *now)
{
	struct stat result;
	enum err e = ERR_OK;
	if (nid_of(now) != nid) /* the kernel knows of its own only */
		notify_attributes(c->fs->notifier, nid_of(now));
	if (nid_of(now) == nid) {
		attr_of_item(c->fs, now, &result);
		reply_attr(c, &result, CACHE_SECONDS);
	} else if (nid_is_private(nid)) {
		attr_of_item(c->fs, now, &result);
		reply_attr(c, &result, 0);
	} else if (old_attributes(c->fs, nid, now, &result) ||
		held_attributes(c->fs, nid, now, false, &result)) {
		reply_attr(c, &result, 0);
	} else if (!handles_of_file(c->fs, nid) &&
		(e = row_attributes(c->fs, nid, now, &result)) == ERR_OK) {
		reply_attr(c, &result, 0);
	} else { /* a path is walked again; set twice is as set once */
		reply_err(c, e == ERR_OK ? ERR_GONE : e);
	}
}

/* The handle has no node of its own: others read by this one, and are told no size of the writer's
 * document. */
static void reply_nodeless(struct fuse_call *c, uint64_t nid, const struct stat *own)
{
	struct item row = { 0 };
	struct stat result = *own;
	const struct content *content = NULL;
	enum err e = store_get(c->fs->store, NULL, nid_id(nid), WANT_ATTRS, &row);
	if (e == ERR_OK) {
		reply_set(c, nid, &row);
		item_fini(&row);
		return;
	}
	if (e == ERR_NOT_FOUND)
		e = contents_look_or_spoil(c->fs->contents, nid, &content);
	if (content != NULL)
		shown_attributes(c->fs, content, NULL, &result);
	contents_unpin(c->fs->contents, content);
	if (e == ERR_OK)
		reply_attr(c, &result, 0);
	else
		reply_err(c, e);
}

/* nid: the node by which it came, where that is not the stage's; else 0. */
static void set_on_stage(
	struct fuse_call *c, struct stage *s, uint64_t nid, const struct stat *st, int to_set)
{
	struct attrs attrs;
	struct stat now;
	enum err e = ERR_OK;
	uint32_t mask = wanted_attrs(st, to_set, &attrs);
	if ((to_set & FUSE_SET_ATTR_SIZE) != 0)
		e = stage_truncate(c->fs, s, (uint64_t)st->st_size);
	if (e == ERR_OK && mask != 0)
		e = stage_set_attrs(c->fs, s, &attrs, mask);
	if (e != ERR_OK) {
		reply_err(c, e);
		return;
	}
	stage_stat(c->fs, s, &now);
	drop_stale_locked(c->fs, s);
	if (mask != 0)
		stages_attributes_set(c->fs, c->fs->stages, now.st_ino);
	if (nid != 0)
		reply_nodeless(c, nid, &now);
	else
		reply_attr(c, &now, 0);
}

/* truncate(2) by path: never a commit.  What is left of a document is no document. */
static enum err refuse_truncate(const struct item *row, off_t size)
{
	if (size == (off_t)row->size)
		return ERR_OK;
	return size == 0 ? ERR_EMPTY : ERR_INCOMPLETE;
}

static enum err set_size(struct fuse_call *c, const struct item *item, off_t size, struct item *ret)
{
	struct fs *fs = c->fs;
	c->title = "truncate";
	if (item->kind == ITEM_ROW)
		return refuse_truncate(item, size);
	if (item->kind != ITEM_FILE)
		return ERR_IS_A_DIRECTORY;
	if (trash_dir_has(item))
		return refuse_in_trash(&c->detail);
	if (item_is_draft(fs, item))
		return size == 0 ? ERR_OK : ERR_INCOMPLETE;
	attr_resize_begins(fs, item->id, item->size);
	enum err e = tree_file_resize(fs->service, item->id, (uint64_t)size, ret);
	attr_resize_ends(fs, item->id, item->size);
	return e == ERR_INVALID_INPUT ? ERR_GONE : e; /* a row by now */
}

/* Mode and owner are the row's, by whichever version of it they come.  A size, or a time that is
 * not now, was made up for the version that is read by the node: a tool that puts back the time
 * that it found would hide the change from those that go by times. */
static bool is_for_old_version(struct fs *fs, uint64_t nid, const struct item *item, int to_set)
{
	bool size = (to_set & FUSE_SET_ATTR_SIZE) != 0;
	bool now =
		(to_set & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW)) != FUSE_SET_ATTR_MTIME;
	if (!size && now)
		return false;
	if (size && item->kind == ITEM_FILE)
		return true; /* of its own node the kernel would not know it */
	const struct content *content = contents_look(fs->contents, nid);
	if (content == NULL)
		content = handles_look(fs, nid);
	contents_unpin(fs->contents, content);
	return content != NULL || handles_of_file(fs, nid);
}

static void set_on_item(struct fuse_call *c, uint64_t nid, const struct stat *st, int to_set)
{
	struct item item = { 0 }, now = { 0 };
	struct attrs attrs;
	uint32_t mask = wanted_attrs(st, to_set, &attrs);
	enum err e = store_get(c->fs->store, NULL, nid_id(nid), WANT_ATTRS, &item);
	if (nid_is_private(nid)) { /* by a guess, which was wrong */
		habits_forget(c->fs->habits, call_thread(c));
		notes_clear(c->fs, c->fs->notes, call_thread(c));
	} else if (e == ERR_OK && nid_of(&item) != nid &&
		is_for_old_version(c->fs, nid, &item, to_set)) {
		e = ERR_GONE;
	}
	if (e == ERR_OK && (to_set & FUSE_SET_ATTR_SIZE) != 0)
		e = set_size(c, &item, st->st_size, &now);
	if (e == ERR_OK && mask != 0) {
		item_fini(&now);
		e = tree_set_attrs(c->fs->service, item.id, &attrs, mask, &now);
		if (e == ERR_OK)
			stages_attributes_set(c->fs, c->fs->stages, item.id);
	}
	/* A name whose draft became a row in between is walked again. */
	if (e == ERR_OK)
		reply_set(c, nid, now.kind != ITEM_NONE ? &now : &item);
	else if (e == ERR_NOT_FOUND && (to_set & FUSE_SET_ATTR_SIZE) == 0)
		reply_gone(c, nid, true);
	else
		reply_err(c, e == ERR_NOT_FOUND ? ERR_GONE : e);
	item_fini(&now);
	item_fini(&item);
}

void op_setattr(
	fuse_req_t req, fuse_ino_t nid, struct stat *st, int to_set, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_SETATTR, nid, NULL);
	struct handle *h = handle_of(fi);
	c.opened = h != NULL;
	if (vnode_ops_of(c.fs, nid) != NULL) {
		virtual_setattr(&c, nid);
		return;
	}
	if (h != NULL && h->kind == HANDLE_STAGE) {
		set_on_stage(&c, h->stage, h->nodeless ? nid : 0, st, to_set);
		return;
	}
	struct stage *s = NULL;
	if (nid_is_private(nid) && !stands_for_row(&c, nid, &s)) {
		if (s == NULL) {
			reply_again(&c);
			return;
		}
		set_on_stage(&c, s, 0, st, to_set);
		stages_unref(c.fs, c.fs->stages, s);
		return;
	}
	set_on_item(&c, nid, st, to_set);
}
