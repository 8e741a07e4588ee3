/* SPDX-License-Identifier: MIT
 * getattr, access and setattr. */
#include "fs/tree/attr.h"

#include "fs/cache/notify.h"
#include "fs/core/idset.h"
#include "fs/core/nid.h"
#include "fs/requests/kinds.h"
#include "fs/requests/refusal.h"
#include "fs/tree/trash_dir.h"
#include "fs/write/speculation.h"
#include "service/tree/tree.h"

#include <errno.h>
#include <unistd.h>

/* ---- getattr and setattr ---- */

static void answer_getattr(struct fuse_call *c, uint64_t nid)
{
	struct node n;
	if (!node_find(c, nid, RETRY_STAT, &n))
		return;
	c->fs->kinds[n.kind]->attributes(c, &n);
	node_fini(c->fs, &n);
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
	struct fuse_call c = call_begin_own(fs, OP_GETATTR, &r);
	answer_getattr(&c, r.nid);
	return true;
}

void op_setattr(
	fuse_req_t req, fuse_ino_t nid, struct stat *st, int to_set, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_SETATTR, nid, NULL);
	struct node n;
	c.opened = fi != NULL;
	if (!node_find(&c, nid, RETRY_STAT, &n))
		return;
	c.fs->kinds[n.kind]->set(&c, &n, st, to_set);
	node_fini(c.fs, &n);
}

/* ---- access ---- */

bool item_mode(struct fs *fs, uint64_t nid, mode_t *ret)
{
	struct stat st = { 0 };
	struct item item = { 0 };
	struct stage *s = nid_is_staged(nid) ? stages_get(fs->stages, nid) : NULL;
	if (s != NULL) {
		stage_stat(fs, s, &st);
		stages_unref(fs, fs->stages, s);
	} else if (store_get(fs->store, NULL, nid_id(nid), WANT_ATTRS, &item) == ERR_OK) {
		attr_of_item(fs, &item, &st);
		item_fini(&item);
	}
	*ret = st.st_mode;
	return st.st_mode != 0;
}

static bool may_run(struct fs *fs, uint64_t nid)
{
	mode_t mode;
	return !kind_by_id(fs, nid)->mode(fs, nid, &mode) || S_ISDIR(mode) ||
		(mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0;
}

/* With allow_other the kernel judges by the modes and does not ask.  Without it the one who is
 * let in may all but what execve(2) refuses. */
void op_access(fuse_req_t req, fuse_ino_t nid, int mask)
{
	struct fuse_call c = call_begin(req, OP_GETATTR, nid, NULL);
	c.noted = true; /* a question is no refusal */
	reply_err(&c, (mask & X_OK) != 0 && !may_run(c.fs, nid) ? ERR_ACCESS : ERR_OK);
}

/* ---- attributes of items ---- */

static void reply_item(struct fuse_call *c, struct item *item, bool lasts)
{
	struct stat st;
	bool lasting = !attr_is_resizing(c->fs, item) && lasts;
	attr_of_item(c->fs, item, &st);
	reply_attr(c, &st, lasting ? keep_seconds(c->fs) : 0);
}

void item_attributes(struct fuse_call *c, struct node *n)
{
	reply_item(c, &n->item, true);
}

/* Finds the row of a node that a lookup gave speculatively.  False: the request is answered. */
static bool find_row(struct fuse_call *c, struct node *n)
{
	enum err e = store_get(c->fs->store, NULL, nid_id(n->nid), WANT_ATTRS, &n->item);
	if (e == ERR_NOT_FOUND)
		reply_again(c);
	else if (e != ERR_OK)
		reply_err(c, e);
	return e == ERR_OK;
}

void speculative_attributes(struct fuse_call *c, struct node *n)
{
	if (find_row(c, n))
		reply_item(c, &n->item, false);
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

/* Returns what somebody reads by a node that is not the current one, pinned; NULL: nobody does. */
static const struct content *held_content(struct fs *fs, uint64_t nid)
{
	service_wait_retained(fs->service); /* it may have been opened as an ordinary file */
	return contents_look(fs->contents, nid);
}

/* Of a row that was replaced or removed (now is NULL). */
static void reply_content(
	struct fuse_call *c, const struct content *content, const struct item *now)
{
	struct stat st;
	shown_attributes(c->fs, content, now, &st);
	if (now == NULL)
		st.st_nlink = 0;
	contents_unpin(c->fs->contents, content);
	reply_attr(c, &st, 0);
}

/* Replies about a node whose version was replaced or removed.  ESTALE has the kernel look the name up
 * once more.  If that finds a row, and the row goes before this request, it is shown as found. */
static void reply_old(struct fuse_call *c, uint64_t nid, const struct item *now)
{
	const struct content *content = held_content(c->fs, nid);
	if (content == NULL) {
		content = old_version(c, nid, now, RETRY_STAT);
		if (content != NULL)
			retries_clear(c->fs, c->fs->retries, call_thread(c));
	}
	if (content != NULL)
		reply_content(c, content, now);
}

void old_attributes(struct fuse_call *c, struct node *n)
{
	reply_old(c, n->nid, node_item(n));
}

/* ---- setting them ---- */

uint32_t attrs_wanted(const struct stat *st, int to_set, struct attrs *ret)
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

/* The attributes are the file's, whichever version they meet.  But the reply is about the node, so its
 * size must not be another version's. */
static void reply_set(struct fuse_call *c, uint64_t nid, const struct item *now)
{
	struct stat result;
	if (nid_of(now) != nid) /* the kernel knows of its own only */
		notify_attributes(c->fs->notifier, nid_of(now));
	if (nid_of(now) == nid || nid_is_staged(nid)) {
		attr_of_item(c->fs, now, &result);
		reply_attr(c, &result, nid_of(now) == nid ? keep_seconds(c->fs) : 0);
	} else { /* a path is walked again; set twice is as set once */
		reply_old(c, nid, now);
	}
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
	if (item_waits_for_document(fs->store, item))
		return size == 0 ? ERR_OK : ERR_INCOMPLETE;
	attr_resize_begins(fs, item->id, item->size);
	enum err e = tree_file_resize(fs->service, item->id, (uint64_t)size, ret);
	attr_resize_ends(fs, item->id, item->size);
	return e == ERR_INVALID_INPUT ? ERR_GONE : e; /* a row by now */
}

void item_set(struct fuse_call *c, struct node *n, const struct stat *st, int to_set)
{
	struct item now = { 0 };
	struct attrs attrs;
	uint32_t mask = attrs_wanted(st, to_set, &attrs);
	enum err e = ERR_OK;
	if ((to_set & FUSE_SET_ATTR_SIZE) != 0)
		e = set_size(c, &n->item, st->st_size, &now);
	if (e == ERR_OK && mask != 0) {
		item_fini(&now);
		e = tree_set_attrs(c->fs->service, n->item.id, &attrs, mask, &now);
		if (e == ERR_OK)
			stages_attributes_set(c->fs, c->fs->stages, n->item.id);
	}
	if (e == ERR_OK)
		reply_set(c, n->nid, now.kind != ITEM_NONE ? &now : &n->item);
	else if (e == ERR_NOT_FOUND && (to_set & FUSE_SET_ATTR_SIZE) == 0)
		reply_old(c, n->nid, NULL);
	else
		reply_err(c, e == ERR_NOT_FOUND ? ERR_GONE : e);
	item_fini(&now);
}

/* The thread sets attributes, so the speculation was wrong. */
void speculative_set(struct fuse_call *c, struct node *n, const struct stat *st, int to_set)
{
	speculation_stop(c->fs->speculation, call_thread(c));
	retries_clear(c->fs, c->fs->retries, call_thread(c));
	if (find_row(c, n))
		item_set(c, n, st, to_set);
}

/* Mode and owner are the row's, by whichever version of it they come.  A size, or a time that is
 * not now, was made up for the version that is read by the node: a tool that puts back the time
 * that it found would hide the change from those that go by times. */
static bool is_for_version(int to_set)
{
	return (to_set & FUSE_SET_ATTR_SIZE) != 0 ||
		(to_set & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW)) == FUSE_SET_ATTR_MTIME;
}

/* By a node that is not the current one: whether the item's attributes may be set, because somebody reads
 * by it, or the thread's look-up found it.  False: the request is answered.  now: NULL: the item has gone.
 * A row's attributes went with it, but an empty file may have become a row. */
static bool may_set_on_old(struct fuse_call *c, uint64_t nid, const struct item *now, int to_set)
{
	struct fs *fs = c->fs;
	bool sized = (to_set & FUSE_SET_ATTR_SIZE) != 0;
	const struct content *content = now != NULL ? held_content(fs, nid) : NULL;
	/* By this node the kernel would not learn the new size of an ordinary file. */
	bool refused = now == NULL || (content != NULL && is_for_version(to_set)) ||
		(sized && now->kind == ITEM_FILE);
	if (content == NULL)
		content = old_version(c, nid, now, RETRY_STAT);
	if (content == NULL)
		return false;
	if (now == NULL && content->item.kind == ITEM_ROW && !sized) {
		reply_content(c, content, NULL);
		return false;
	}
	contents_unpin(fs->contents, content);
	if (refused)
		reply_err(c, ERR_GONE);
	return !refused;
}

void old_set(struct fuse_call *c, struct node *n, const struct stat *st, int to_set)
{
	if (may_set_on_old(c, n->nid, node_item(n), to_set))
		item_set(c, n, st, to_set);
}
