/* SPDX-License-Identifier: MIT
 * create: a new file, open. */
#include "fs/core/nid.h"
#include "fs/requests/kinds.h"
#include "fs/requests/refusal.h"
#include "fs/tree/attr.h"
#include "fs/write/retries.h"
#include "service/core/admission.h"
#include "service/tree/tree.h"

#include <errno.h>
#include <fcntl.h>

static void reply_create(struct fuse_call *c, uint64_t nid, const struct stat *st, double timeout,
	struct handle *h, struct fuse_file_info *fi)
{
	struct fuse_entry_param e = { .ino = nid, .generation = 1, .attr = *st };
	e.attr_timeout = keep_seconds(c->fs);
	e.entry_timeout = timeout;
	reply_elsewhere(c);
	if (fuse_reply_create(c->req, &e, fi) == -ENOENT)
		close_handle(c->fs, h);
}

static void create_row(
	struct fuse_call *c, struct resolved_name *t, mode_t mode, struct fuse_file_info *fi)
{
	struct fs *fs = c->fs;
	struct item item = { 0 };
	struct stage *s = NULL;
	stages_expose(fs, fs->stages, t->dir.id, t->name.p);
	enum err e = resolved_name_item(fs->store, t, WANT_BODY, &item);
	if (e == ERR_OK && (fi->flags & O_EXCL) != 0)
		e = ERR_NAME_EXISTS;
	bool fresh = e == ERR_NOT_FOUND;
	if (e == ERR_OK || fresh)
		e = stage_new(fs, t, fresh ? NULL : &item, &s);
	item_fini(&item);
	if (e != ERR_OK) {
		reply_err(c, e);
		return;
	}
	const struct fuse_ctx *ctx = fuse_req_ctx(c->req);
	struct attrs attrs = attr_for_new(fs, &s->at.dir, mode, ctx->uid, ctx->gid, false);
	stage_created(s, fresh ? &attrs : NULL); /* op_create() has let it in */
	stages_add(fs->stages, s, 0);
	struct handle *h = open_handle(c, KIND_STAGED, s->nid, fi);
	if (h == NULL) {
		stages_unref(fs, fs->stages, s);
		reply_err(c, ERR_NO_MEMORY);
		return;
	}
	h->stage = s;
	fi->direct_io = writes_directly(fi);
	stage_opened(fs, s, ctx->uid, (fi->flags & O_TRUNC) != 0);
	/* Who only reads changes nothing later, when the mount may be read-only. */
	if ((fi->flags & O_ACCMODE) == O_RDONLY)
		(void)stage_create_name(fs, s);
	struct stat st;
	stage_stat(fs, s, &st);
	reply_create(c, s->nid, &st, 0, h, fi);
}

static void create_file(
	struct fuse_call *c, struct resolved_name *t, mode_t mode, struct fuse_file_info *fi)
{
	struct fs *fs = c->fs;
	const struct fuse_ctx *ctx = fuse_req_ctx(c->req);
	struct attrs attrs = attr_for_new(fs, &t->dir, mode, ctx->uid, ctx->gid, false);
	const struct dentry at = name_dentry(t, ITEM_FILE);
	struct item file = { 0 };
	enum err e = tree_create_file(fs->service, &at, &attrs, &file, NULL);
	if (e == ERR_NAME_EXISTS && (fi->flags & O_EXCL) == 0)
		e = resolved_name_item(fs->store, t, WANT_ATTRS, &file);
	struct handle *h = NULL;
	if (e == ERR_OK && (h = open_handle(c, KIND_FILE, nid_of(&file), fi)) == NULL)
		e = ERR_NO_MEMORY;
	if (e == ERR_OK) {
		struct stat st;
		attr_of_item(fs, &file, &st);
		fi->keep_cache = !fs->shared;
		fi->noflush = may_skip_flush(fs->locks, fi);
		reply_create(c, nid_of(&file), &st, keep_seconds(fs), h, fi);
	} else {
		reply_err(c, e);
	}
	item_fini(&file);
}

void op_create(
	fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_CREATE, parent, name);
	retries_clear(c.fs, c.fs->retries, call_thread(&c));
	if (may_open(&c))
		kind_by_id(c.fs, parent)->create(&c, parent, name, mode, fi);
}

void item_create(
	struct fuse_call *c, uint64_t dir, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	struct resolved_name t = { 0 };
	enum err e = name_resolve(c->fs->store, dir, name, &t, &c->detail);
	e = refuse_file_name(c->fs, dir, e, &c->detail);
	if (e == ERR_OK && t.control != 0)
		e = refuse_control(&c->detail);
	else if (e == ERR_OK && !name_may_hold_files(&t))
		e = refuse_file_there(c->fs, &t, &c->detail);
	if (e == ERR_OK && t.row_name)
		e = admission_in(c->fs->service, &t.dir, HEAT_CHANGED, 1, &c->detail);
	if (e == ERR_OK && t.row_name)
		create_row(c, &t, mode, fi);
	else if (e == ERR_OK)
		create_file(c, &t, mode, fi);
	else
		reply_err(c, e);
	resolved_name_fini(&t);
}
