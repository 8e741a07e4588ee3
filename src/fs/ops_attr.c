/* SPDX-License-Identifier: MIT
 * getattr and setattr. */
#include "fs/attr.h"
#include "fs/nid.h"
#include "fs/ops.h"
#include "fs/reason.h"
#include "service/tree.h"

#include <errno.h>

/* A row that was replaced or removed: as it was, while somebody holds it. */
static bool old_attributes(struct fs *fs, uint64_t nid, bool row_lives, struct stat *ret)
{
	const struct blob *blob = blobs_look(fs->blobs, nid);
	if (blob == NULL)
		return false;
	attr_of_item(fs, &blob->item, ret);
	if (!row_lives)
		ret->st_nlink = 0;
	blobs_unpin(fs->blobs, blob);
	return true;
}

void op_getattr(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct call c = call_begin(req, OP_GETATTR);
	struct stat st;
	if (nid_is_control(nid)) {
		attr_of_control(c.fs, nid, &st);
		reply_attr(&c, &st, CACHE_SECONDS);
		return;
	}
	if (nid_is_private(nid)) {
		struct stage *s = stages_get(c.fs->stages, nid);
		if (s == NULL) {
			reply_errno(&c, ESTALE);
			return;
		}
		stage_stat(c.fs, s, &st);
		reply_attr(&c, &st, 0);
		stages_unref(c.fs, c.fs->stages, s);
		return;
	}
	struct item item = { 0 };
	enum err e = store_get(c.fs->store, NULL, nid_id(nid), WANT_ATTRS, &item);
	bool current = e == ERR_OK && nid_of(&item) == nid;
	if (e != ERR_OK && e != ERR_NOT_FOUND) {
		reply_err(&c, e);
	} else if (!current && old_attributes(c.fs, nid, e == ERR_OK, &st)) {
		reply_attr(&c, &st, 0);
	} else if (e == ERR_OK) {
		/* Of an old version that nobody has open: those of the row, since whoever asks
		 * came by its name. */
		attr_of_item(c.fs, &item, &st);
		if (item.parent == STORE_ORPHANS)
			st.st_nlink = 0;
		reply_attr(&c, &st, current ? CACHE_SECONDS : 0);
	} else {
		reply_errno(&c, ESTALE);
	}
	item_fini(&item);
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
	if (mask != 0) {
		ret->ctime_ns = attr_unix_ns(now);
		mask |= ATTR_CTIME;
	}
	return mask;
}

static void set_on_stage(struct call *c, struct stage *s, const struct stat *st, int to_set)
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
	reply_after_commit_locked(c, s, &now);
}

/* truncate(2) by path: never a commit.  What is left of a document is no document. */
static enum err refuse_truncate(struct fs *fs, const struct item *row, off_t size)
{
	if (size == (off_t)row->size)
		return ERR_OK;
	char name[COMPONENT_MAX];
	size_t n = item_component(row, name);
	enum err e = size == 0 ? ERR_EMPTY : ERR_INCOMPLETE;
	reasons_add(fs,
		&(struct refusal){ .call = "truncate",
			.dir = row->parent,
			.name = span_make(name, n),
			.error = e });
	return e;
}

static enum err set_size(struct fs *fs, const struct item *item, off_t size, struct item *ret)
{
	if (item->kind == ITEM_ROW)
		return refuse_truncate(fs, item, size);
	if (item->kind != ITEM_FILE)
		return ERR_IS_A_DIRECTORY;
	if (item_is_draft(fs, item))
		return size == 0 ? ERR_OK : ERR_INCOMPLETE;
	return tree_file_resize(fs->service, item->id, (uint64_t)size, ret);
}

void op_setattr(
	fuse_req_t req, fuse_ino_t nid, struct stat *st, int to_set, struct fuse_file_info *fi)
{
	struct call c = call_begin(req, OP_SETATTR);
	struct handle *h = handle_of(fi);
	if (nid_is_control(nid)) {
		reply_errno(&c, EPERM);
		return;
	}
	if (h != NULL && h->kind == HANDLE_STAGE) {
		set_on_stage(&c, h->stage, st, to_set);
		return;
	}
	if (nid_is_private(nid)) {
		struct stage *s = stages_get(c.fs->stages, nid);
		if (s == NULL) {
			reply_errno(&c, ESTALE);
			return;
		}
		set_on_stage(&c, s, st, to_set);
		stages_unref(c.fs, c.fs->stages, s);
		return;
	}
	struct item item = { 0 }, now = { 0 };
	struct attrs attrs;
	uint32_t mask = wanted_attrs(st, to_set, &attrs);
	enum err e = store_get(c.fs->store, NULL, nid_id(nid), WANT_ATTRS, &item);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && nid_of(&item) != nid))
		e = ERR_GONE;
	if (e == ERR_OK && (to_set & FUSE_SET_ATTR_SIZE) != 0)
		e = set_size(c.fs, &item, st->st_size, &now);
	if (e == ERR_OK && mask != 0) {
		item_fini(&now);
		e = tree_set_attrs(c.fs->service, item.id, &attrs, mask, &now);
	}
	if (e == ERR_OK) {
		struct stat result;
		attr_of_item(c.fs, now.kind != ITEM_NONE ? &now : &item, &result);
		reply_attr(&c, &result, CACHE_SECONDS);
	} else {
		reply_err(&c, e);
	}
	item_fini(&now);
	item_fini(&item);
}
