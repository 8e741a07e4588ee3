/* SPDX-License-Identifier: MIT
 * Requests that change names: making and removing directories, unlink, rename. */
#include "fs/cache/notify.h"
#include "fs/core/idset.h"
#include "fs/core/nid.h"
#include "fs/refused/rejected.h"
#include "fs/requests/kinds.h"
#include "fs/requests/refusal.h"
#include "fs/tree/attr.h"
#include "fs/tree/facts.h"
#include "fs/tree/trash_dir.h"
#include "fs/write/look.h"
#include "fs/write/speculation.h"
#include "service/change/adoption.h"
#include "service/core/admission.h"
#include "service/tree/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- making and removing ---- */

/* resolve for a name that shall be made. */
static enum err resolve_new(struct store *store, uint64_t parent, const char *name,
	struct resolved_name *t, struct err_detail *detail)
{
	enum err e = name_resolve(store, parent, name, t, detail);
	return e == ERR_OK && t->control != 0 ? refuse_control(detail) : e;
}

static bool may_make_dir(const struct resolved_name *t)
{
	if (t->dir.id < STORE_ID_FIRST && t->dir.id != STORE_ROOT)
		return false;
	bool files = t->dir.kind == ITEM_PARTITION || t->pending_dir ||
		(t->dir.kind == ITEM_TABLE && t->class == CLASS_NAMED);
	return !files || (!t->row_name && t->name.p[0] == '.');
}

/* In a table any other name is a partition's, which a folder does not become. */
static bool may_hold_folder(const struct resolved_name *t)
{
	return may_make_dir(t) && (t->digest || t->class == CLASS_NAMED);
}

/* Another front end made the partition of that digest after the look and before the directory:
 * the name is taken.  Nobody saw the directory: the kernel holds the parent's lock. */
static enum err give_way(struct fs *fs, uint64_t parent, const char *name, const struct item *made)
{
	struct resolved_name now = { 0 };
	struct item there = { 0 };
	enum err e = name_resolve(fs->store, parent, name, &now, NULL);
	if (e == ERR_OK && !now.digest)
		e = resolved_name_item(fs->store, &now, WANT_ATTRS, &there);
	bool taken = e == ERR_OK && there.kind == ITEM_PARTITION && there.id != made->id;
	item_fini(&there);
	resolved_name_fini(&now);
	if (!taken)
		return ERR_OK;
	e = tree_drop(fs->service, made->id);
	return e == ERR_OK ? ERR_NAME_EXISTS : e;
}

void item_mkdir(struct fuse_call *c, uint64_t dir, const char *name, mode_t mode)
{
	struct resolved_name t = { 0 };
	struct item made = { 0 };
	enum err e = resolve_new(c->fs->store, dir, name, &t, &c->detail);
	if (e == ERR_OK && !may_make_dir(&t))
		e = refuse_dir_there(c->fs, &t, &c->detail);
	if (e == ERR_OK) {
		const struct fuse_ctx *ctx = fuse_req_ctx(c->req);
		struct attrs attrs = attr_for_new(c->fs, &t.dir, mode, ctx->uid, ctx->gid, true);
		bool folder = t.digest || t.class == CLASS_NAMED;
		const struct dentry at = name_dentry(&t, folder ? ITEM_FOLDER : ITEM_NONE);
		e = tree_mkdir(c->fs->service, &at, &attrs, &made, &c->detail);
	}
	if (e == ERR_OK && t.digest)
		e = give_way(c->fs, dir, name, &made);
	if (e == ERR_OK) {
		struct stat st;
		attr_of_item(c->fs, &made, &st);
		idset_mark(c->fs->seen, made.parent);
		reply_node(c, nid_of(&made), &st, keep_seconds(c->fs));
	} else {
		reply_err(c, e);
	}
	item_fini(&made);
	resolved_name_fini(&t);
}

/* Finds the item at a name that is to be removed or moved.  New names become visible first. */
static enum err find_existing(struct fs *fs, uint64_t parent, const char *name,
	struct resolved_name *t, struct item *item, struct err_detail *detail)
{
	enum err e = name_resolve(fs->store, parent, name, t, NULL);
	if (name_means_nothing(e))
		return ERR_NOT_FOUND;
	if (e != ERR_OK)
		return e;
	if (t->control != 0)
		return refuse_control(detail);
	e = name_look(fs, t, WANT_ATTRS, item);
	if (e == ERR_OK && item_is_dir(item->kind))
		stages_expose(fs, fs->stages, item->id, NULL);
	return e;
}

/* An empty file whose key is not known is adopted at any moment (service/change/adoption.h), which
 * is no reason to say that the name is not there: it is looked at once more, so often at most. */
#define ADOPTED_TRIES 64

static bool may_be_adopted(const struct resolved_name *t, const struct item *it)
{
	return t->row_name && it->kind == ITEM_FILE;
}

static enum err unlink_item(struct fs *fs, const struct resolved_name *t, const struct item *it,
	struct err_detail *detail)
{
	const struct dentry at = name_dentry(t, it->kind);
	if (it->kind == ITEM_FILE)
		return file_unlink(fs, &at, it->id, detail);
	if (it->kind != ITEM_ROW)
		return tree_unlink(fs->service, &at, NULL, detail);
	enum err e = item_is_empty_row(it)
		? ERR_OK
		: admission_in(fs->service, &t->dir, HEAT_CHANGED, 1, detail);
	return e == ERR_OK ? trash_dir_unlink(fs, &at, detail) : e;
}

static enum err find_and_unlink(struct fs *fs, uint64_t parent, const char *name,
	struct resolved_name *t, struct item *item, struct err_detail *detail)
{
	enum err e;
	int tries = 0;
	do {
		resolved_name_fini(t);
		item_fini(item);
		e = find_existing(fs, parent, name, t, item, detail);
		if (e == ERR_OK && item_is_dir(item->kind))
			e = ERR_IS_A_DIRECTORY;
		if (e == ERR_OK)
			e = unlink_item(fs, t, item, detail);
	} while (e == ERR_NOT_FOUND && may_be_adopted(t, item) && ++tries < ADOPTED_TRIES);
	return e;
}

void item_unlink(struct fuse_call *c, uint64_t dir, const char *name)
{
	struct resolved_name t = { 0 };
	struct item item = { 0 };
	enum err e = find_and_unlink(c->fs, dir, name, &t, &item, &c->detail);
	if (e == ERR_OK)
		trash_dir_left(c->fs->trash, &item);
	if (speculation_take(c->fs->speculation, call_thread(c)) && e == ERR_OK)
		notify_attributes(c->fs->notifier, nid_of(&item));
	reply_err(c, e);
	item_fini(&item);
	resolved_name_fini(&t);
}

void item_rmdir(struct fuse_call *c, uint64_t dir, const char *name)
{
	struct resolved_name t = { 0 };
	struct item item = { 0 };
	enum err e = find_existing(c->fs, dir, name, &t, &item, &c->detail);
	/* The room of a control directory decides. */
	if (t.control != 0 && vnode_ops_of(c->fs, t.control)->rmdir != NULL) {
		c->detail = (struct err_detail){ 0 };
		kind_by_id(c->fs, t.control)->rmdir(c, t.control, "");
		resolved_name_fini(&t);
		return;
	}
	if (e == ERR_OK && !item_is_dir(item.kind))
		e = ERR_NOT_A_DIRECTORY;
	if (e == ERR_OK) {
		const struct dentry at = name_dentry(&t, item.kind);
		e = tree_rmdir(c->fs->service, &at, &c->detail);
	}
	reply_err(c, e);
	item_fini(&item);
	resolved_name_fini(&t);
}

/* ---- rename ---- */

struct renaming {
	struct resolved_name from, to;
	struct item item, replaced; /* replaced.kind: ITEM_NONE if nothing stands there */
	struct buf content;         /* of an ordinary file that becomes a row */
	enum item_kind becomes;     /* ITEM_ROW, ITEM_FILE or the directory's own kind */
};

static void renaming_fini(struct renaming *r)
{
	resolved_name_fini(&r->from);
	resolved_name_fini(&r->to);
	item_fini(&r->item);
	item_fini(&r->replaced);
	buf_fini(&r->content);
}

/* A folder whose key only the document knows. */
static enum err learn_partition_key(
	struct service *service, struct renaming *r, struct err_detail *detail)
{
	struct resolved_name dir = { .name = r->to.dir.key, .digest = true };
	enum err e = resolved_name_learn(&dir, buf_span(&r->content), detail);
	if (e != ERR_OK)
		return e;
	struct item partition = { 0 };
	e = adopt_folder(service, ORIGIN_MOUNT, &r->to.dir, span_make(dir.key, dir.key_len),
		&partition, detail);
	if (e == ERR_OK) {
		item_fini(&r->to.dir);
		r->to.dir = partition;
		r->to.pending_dir = false;
	}
	return e;
}

/* A destination whose keys only the document knows. */
static enum err learn_keys(struct service *service, struct renaming *r, struct err_detail *detail)
{
	bool digest = r->to.digest;
	struct item now = { 0 };
	enum err e = resolved_name_learn(&r->to, buf_span(&r->content), detail);
	if (e == ERR_OK && r->to.pending_dir)
		e = learn_partition_key(service, r, detail);
	if (e != ERR_OK || !digest || r->replaced.kind != ITEM_FILE)
		return e;
	e = adopt_file(service, ORIGIN_MOUNT, &r->replaced, r->to.dir.id,
		span_make(r->to.key, r->to.key_len), &now);
	if (e == ERR_OK) {
		item_fini(&r->replaced);
		r->replaced = now;
	}
	return e;
}

static enum err load_content(struct service *service, struct renaming *r)
{
	r->content = BUF_INIT(LIMIT_DOCUMENT_BYTES);
	if (r->item.kind == ITEM_FILE)
		return tree_file_content(service, &r->item, &r->content);
	return ERR_OK;
}

/* Another table of that name in another case is there: renaming onto it would replace it. */
static enum err check_table_case(struct store *store, struct renaming *r)
{
	struct item there = { 0 };
	if (r->to.dir.kind != ITEM_ACCOUNT || r->replaced.kind != ITEM_NONE)
		return ERR_OK;
	enum err e = store_child(store, NULL, r->to.dir.id, CLASS_KEYED,
		span_make(r->to.key, r->to.key_len), WANT_ATTRS, &there);
	bool other = e == ERR_OK && there.id != r->item.id;
	item_fini(&there);
	return other ? ERR_TABLE_EXISTS : ERR_OK;
}

static enum err prepare_dir(struct store *store, struct renaming *r)
{
	return r->to.digest ? ERR_KEY_MISSING : check_table_case(store, r);
}

static bool waits(const struct resolved_name *t, const struct item *it)
{
	return item_is_empty_row(it) || may_be_adopted(t, it);
}

static enum err prepare_file(
	struct fs *fs, struct renaming *r, unsigned flags, struct err_detail *detail)
{
	bool exchange = (flags & RENAME_EXCHANGE) != 0;
	bool from_waits = waits(&r->from, &r->item), to_waits = waits(&r->to, &r->replaced);
	if (!name_may_hold_files(&r->to))
		return refuse_file_there(fs, &r->to, detail);
	if (exchange && !name_may_hold_files(&r->from))
		return refuse_file_there(fs, &r->from, detail);
	/* An empty file that waits for its document can change places only with another. */
	if (exchange && from_waits != to_waits)
		return err_set(detail, ERR_NOT_AN_ENTITY, "the empty file holds no entity");
	bool empty = r->item.size == 0;
	r->becomes = r->to.row_name && (!empty || name_tells_key(&r->to)) ? ITEM_ROW : ITEM_FILE;
	if (r->becomes != ITEM_ROW || empty)
		return ERR_OK;
	if (r->item.kind == ITEM_ROW)
		return r->to.digest || r->to.pending_dir ? ERR_KEY_MISSING : ERR_OK;
	enum err e = load_content(fs->service, r);
	return e == ERR_OK && (r->to.digest || r->to.pending_dir)
		? learn_keys(fs->service, r, detail)
		: e;
}

static enum err prepare_rename(struct fs *fs, struct renaming *r, fuse_ino_t parent,
	const char *name, fuse_ino_t new_parent, const char *new_name, unsigned flags,
	struct err_detail *detail)
{
	enum err e = find_existing(fs, parent, name, &r->from, &r->item, detail);
	if (e == ERR_OK)
		e = resolve_new(fs->store, new_parent, new_name, &r->to, detail);
	if (r->item.kind == ITEM_ROW || r->item.kind == ITEM_FILE)
		e = refuse_file_name(fs, new_parent, e, detail);
	if (e != ERR_OK)
		return e;
	e = name_look(fs, &r->to, WANT_ATTRS, &r->replaced);
	if (e != ERR_OK && e != ERR_NOT_FOUND)
		return e;
	if (item_is_dir(r->replaced.kind))
		stages_expose(fs, fs->stages, r->replaced.id, NULL);
	r->becomes = r->item.kind;
	bool exchange = (flags & RENAME_EXCHANGE) != 0;
	if (r->item.kind == ITEM_FOLDER && !may_hold_folder(&r->to))
		return refuse_dir_there(fs, &r->to, detail);
	if (exchange && r->replaced.kind == ITEM_FOLDER && !may_hold_folder(&r->from))
		return refuse_dir_there(fs, &r->from, detail);
	if (item_is_dir(r->item.kind))
		return prepare_dir(fs->store, r);
	return prepare_file(fs, r, flags, detail);
}

/* The node that the kernel moves along is not the item's any more where a document was rendered
 * anew, or where a row became an ordinary file.  A handle on the row keeps what it holds. */
static void moved(struct notifier *notifier, uint64_t was, const struct item *now,
	const struct resolved_name *at)
{
	if (nid_of(now) == was)
		return;
	notify_old_node(notifier, was);
	notify_name_soon(notifier, nid_make(at->dir.id, 0), at->name);
}

/* The other one of an exchange; read again, since another front end may have changed it since. */
static void other_moved(struct fs *fs, const struct renaming *r)
{
	struct item now = { 0 };
	if (store_get(service_store(fs->service), NULL, r->replaced.id, WANT_ATTRS, &now) == ERR_OK)
		moved(fs->notifier, nid_of(&r->replaced), &now, &r->from);
	item_fini(&now);
}

/* The move itself, with rename(2)'s flags. */
static enum err perform_rename(
	struct fs *fs, struct renaming *r, unsigned flags, struct err_detail *detail)
{
	const struct dentry from = name_dentry(&r->from, r->item.kind);
	enum item_kind there = r->becomes;
	if ((flags & RENAME_EXCHANGE) != 0 && r->replaced.kind != ITEM_NONE)
		there = r->replaced.kind;
	const struct dentry to = name_dentry(&r->to, there);
	unsigned tree_flags = 0;
	bool goes = false;
	if ((flags & RENAME_NOREPLACE) != 0)
		tree_flags |= TREE_NO_REPLACE;
	if ((flags & RENAME_EXCHANGE) != 0)
		tree_flags |= TREE_EXCHANGE;
	else if (r->replaced.kind == ITEM_FILE && !(goes = file_goes(fs, r->replaced.id)))
		tree_flags |= TREE_KEEP_REPLACED;
	struct item now = { 0 };
	enum err e = tree_move(fs->service, &from, &to, tree_flags, &now, NULL, detail);
	if (goes)
		file_went(fs, r->replaced.id);
	else if (e == ERR_OK && (tree_flags & TREE_KEEP_REPLACED) != 0)
		file_drop_orphan(fs, r->replaced.id);
	if (e == ERR_OK) {
		trash_dir_left(fs->trash, &r->item);
		moved(fs->notifier, nid_of(&r->item), &now, &r->to);
	}
	if (e == ERR_OK && (flags & RENAME_EXCHANGE) != 0)
		other_moved(fs, r);
	item_fini(&now);
	return e;
}

static enum err prepare_and_perform(struct fs *fs, struct renaming *r, fuse_ino_t parent,
	const char *name, fuse_ino_t new_parent, const char *new_name, unsigned flags,
	struct err_detail *detail)
{
	enum err e;
	int tries = 0;
	bool exchange = (flags & RENAME_EXCHANGE) != 0;
	do {
		renaming_fini(r);
		*r = (struct renaming){ 0 };
		e = prepare_rename(fs, r, parent, name, new_parent, new_name, flags, detail);
		if (e == ERR_OK && exchange && r->replaced.kind == ITEM_NONE)
			e = ERR_NOT_FOUND;
		if (e == ERR_OK && (flags & RENAME_NOREPLACE) != 0 && r->replaced.kind != ITEM_NONE)
			e = ERR_NAME_EXISTS;
		if (e == ERR_OK)
			e = perform_rename(fs, r, flags, detail);
	} while (e == ERR_NOT_FOUND &&
		(may_be_adopted(&r->from, &r->item) ||
			(exchange && may_be_adopted(&r->to, &r->replaced))) &&
		++tries < ADOPTED_TRIES);
	return e;
}

static bool is_refused_document(enum err e)
{
	int code = err_errno(e);
	return code == EINVAL || code == E2BIG || code == EFBIG || code == EBADMSG;
}

/* An ordinary file that is no row: the bytes are kept.  mv says of EINVAL what is not so. */
static enum err refuse_document(struct fuse_call *c, struct renaming *r, enum err e)
{
	char rejected[REJECTED_NAME_MAX] = "";
	uint64_t id = 0;
	if (r->content.len > 0)
		(void)rejected_save(
			c->fs, span_of(c->to_name), buf_span(&r->content), &id, rejected);
	note_refusal(c, e, rejected);
	c->noted = true;
	return ERR_NOT_AN_ENTITY;
}

/* Whether the new name is one of rowfs's own that takes files over: then the request is its. */
static bool is_replaced(struct fuse_call *c, uint64_t dir, const char *name, unsigned flags)
{
	struct resolved_name to = { 0 };
	if (c->to_name[0] != '.' || flags != 0 ||
		name_resolve(c->fs->store, c->to_nid, c->to_name, &to, NULL) != ERR_OK)
		return false;
	uint64_t nid = to.control;
	resolved_name_fini(&to);
	return nid != 0 && virtual_replace(c, dir, name, nid);
}

void item_rename(struct fuse_call *c, uint64_t dir, const char *name, uint64_t to,
	const char *to_name, unsigned flags)
{
	if ((flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE)) != 0) {
		reply_err(c,
			err_set(&c->detail, ERR_INVALID_INPUT,
				"rename knows the flags NOREPLACE and EXCHANGE only."));
		return;
	}
	if (is_replaced(c, dir, name, flags))
		return;
	struct renaming *r = calloc(1, sizeof(*r));
	if (r == NULL) {
		reply_err(c, ERR_NO_MEMORY);
		return;
	}
	enum err e = prepare_and_perform(c->fs, r, dir, name, to, to_name, flags, &c->detail);
	if (speculation_take(c->fs->speculation, call_thread(c)) && e == ERR_OK) {
		notify_attributes(c->fs->notifier, nid_of(&r->item));
		if (r->replaced.kind != ITEM_NONE)
			notify_attributes(c->fs->notifier, nid_of(&r->replaced));
	}
	bool from_file =
		(r->becomes == ITEM_ROW && (r->item.kind == ITEM_FILE || r->item.size == 0)) ||
		((flags & RENAME_EXCHANGE) != 0 && r->replaced.kind == ITEM_FILE);
	if (from_file && is_refused_document(e))
		e = refuse_document(c, r, e);
	else if (e == ERR_CONDITION_NOT_MET)
		(void)err_set(&c->detail, e, "%s", MATCH_NOT_MET_TEXT);
	if (e == ERR_OK && r->becomes == ITEM_ROW)
		reasons_clear(c->fs->reasons, r->to.dir.id, span_of(to_name));
	reply_err(c, e);
	renaming_fini(r);
	free(r);
}

/* ---- requests ---- */

void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct fuse_call c = call_begin(req, OP_MKDIR, parent, name);
	kind_by_id(c.fs, parent)->mkdir(&c, parent, name, mode);
}

void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_call c = call_begin(req, OP_UNLINK, parent, name);
	kind_by_id(c.fs, parent)->unlink(&c, parent, name);
}

void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_call c = call_begin(req, OP_RMDIR, parent, name);
	kind_by_id(c.fs, parent)->rmdir(&c, parent, name);
}

void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
	const char *new_name, unsigned flags)
{
	struct fuse_call c = call_begin(req, OP_RENAME, parent, name);
	uint64_t decides = vnode_ops_of(c.fs, parent) != NULL ? parent : new_parent;
	c.to_nid = new_parent;
	c.to_name = new_name;
	kind_by_id(c.fs, decides)->rename(&c, parent, name, new_parent, new_name, flags);
}
