/* SPDX-License-Identifier: MIT */
#include "fs/tree/listing.h"

#include "base/lock.h"
#include "fs/core/dir_cursors.h"
#include "fs/core/nid.h"
#include "fs/core/virtual.h"
#include "fs/tree/attr.h"
#include "fs/tree/control_names.h"
#include "fs/tree/names.h"
#include "fs/tree/open_quota.h"

#include <stdlib.h>

/* Positions below STORE_ID_FIRST are not ids. */
#define AFTER_DOT 1
#define AFTER_DOTDOT 2
/* from 3 on: control names */

struct listing {
	struct mutex lock;
	uint64_t dir_id;
	uint32_t snapshot; /* 0: of now */
	enum item_kind kind;
	struct dir_cursors cursors; /* guarded by lock */
	size_t held;                /* of them, as counted (open_quota.h) */
};

enum err listing_new(struct fs *fs, struct store_view *view, uint32_t snapshot, uint64_t dir_id,
	struct listing **ret)
{
	struct listing *l = calloc(1, sizeof(*l));
	if (l == NULL || mutex_init(&l->lock, RANK_LISTING) != 0) {
		free(l);
		return ERR_NO_MEMORY;
	}
	l->dir_id = dir_id;
	l->snapshot = snapshot;
	struct item dir = { 0 };
	enum err e = store_get(fs->store, view, dir_id, WANT_ATTRS, &dir);
	if (e == ERR_NOT_FOUND)
		e = ERR_GONE;
	else if (e == ERR_OK && !item_is_dir(dir.kind) && dir.id != STORE_ROOT)
		e = ERR_NOT_A_DIRECTORY;
	l->kind = dir.kind;
	item_fini(&dir);
	if (e != ERR_OK) {
		listing_free(fs->open_quota, l);
		return e;
	}
	*ret = l;
	return ERR_OK;
}

void listing_free(struct open_quota *open_quota, struct listing *l)
{
	if (l == NULL)
		return;
	open_quota_set(open_quota, &l->held, 0);
	dir_cursors_fini(&l->cursors);
	mutex_destroy(&l->lock);
	free(l);
}

/* ---- one reply ---- */

struct reply {
	struct fs *fs;
	struct store_view *view;
	struct listing *l;
	listing_fn fn;
	void *arg;
	bool names, full;
	enum err error;
};

static bool send_item(void *arg, const struct item *it)
{
	struct reply *r = arg;
	char name[COMPONENT_MAX];
	struct stat st;
	(void)item_component(it, name);
	uint64_t nid = nid_of(it);
	if (r->names)
		st = (struct stat){ .st_ino = it->id,
			.st_mode = item_is_dir(it->kind) ? S_IFDIR : S_IFREG };
	else
		attr_of_item(r->fs, it, &st);
	if (r->l->snapshot != 0)
		st.st_ino = nid = nid_in_snapshot(r->l->snapshot, it->id);
	if (!r->fn(r->arg, name, nid, &st, (int64_t)it->id)) {
		r->full = true;
		return false;
	}
	r->error = dir_cursors_add(&r->l->cursors, it->id, it->class, it->key);
	return r->error == ERR_OK;
}

static enum err send_class(struct reply *r, enum item_class class, struct span after)
{
	/* A table has another name than its key. */
	bool keys = r->names && class == CLASS_KEYED && r->l->kind != ITEM_ACCOUNT;
	enum err e = store_list(r->fs->store, r->view, r->l->dir_id, class, after, false,
		keys ? WANT_KEYS : WANT_ATTRS, send_item, r);
	return e == ERR_OK ? r->error : e;
}

static bool send_dots(struct reply *r, int64_t offset)
{
	struct stat st = { .st_ino = r->l->dir_id, .st_mode = S_IFDIR };
	if (r->l->snapshot != 0)
		st.st_ino = nid_in_snapshot(r->l->snapshot, r->l->dir_id);
	if (offset < AFTER_DOT && !r->fn(r->arg, ".", 0, &st, AFTER_DOT))
		return false;
	return offset >= AFTER_DOTDOT || r->fn(r->arg, "..", 0, &st, AFTER_DOTDOT);
}

static bool next_control(
	const struct listing *l, size_t i, const char **name, uint64_t *nid, enum item_class *holds)
{
	enum dir_control which;
	*holds = CLASS_KEYED;
	if (l->dir_id == STORE_ROOT && i == 0) {
		*name = ".rowfs";
		*nid = NID_CONTROL_DIR;
		return true;
	}
	if (!dir_control_entry(l->kind, i, name, &which, holds))
		return false;
	*nid = nid_of_dir_control(which, l->dir_id);
	return true;
}

static bool on_child(void *arg, const struct item *it)
{
	(void)it;
	*(bool *)arg = true;
	return false;
}

/* Control names answer to lookup.  They are listed on wish, or while they hold something. */
static bool is_listed(const struct reply *r, enum item_class holds)
{
	bool any = r->fs->options.list_controls;
	if (!any && holds != CLASS_KEYED)
		(void)store_list(r->fs->store, NULL, r->l->dir_id, holds, (struct span){ 0 }, false,
			WANT_KEYS, on_child, &any);
	return any;
}

static bool send_controls(struct reply *r, int64_t offset)
{
	const char *name;
	uint64_t nid;
	enum item_class holds;
	size_t i = offset <= AFTER_DOTDOT ? 0 : (size_t)offset - AFTER_DOTDOT;
	if (r->l->snapshot != 0)
		return true;
	for (; next_control(r->l, i, &name, &nid, &holds); i++) {
		struct stat st;
		if (!is_listed(r, holds))
			continue;
		/* nid 0: no attributes with it */
		if (vnode_ops_of(r->fs, nid)->stat(r->fs, nid, &st) != ERR_OK ||
			!r->fn(r->arg, name, 0, &st, (int64_t)(AFTER_DOTDOT + 1 + i)))
			return false;
	}
	return true;
}

/* The place to go on from. */
static enum err find_position(
	const struct reply *r, uint64_t id, enum item_class *ret_class, struct item *hold)
{
	struct item marked = { 0 };
	if (dir_cursors_find(&r->l->cursors, id, ret_class, &marked.key))
		return item_copy(hold, &marked);
	enum err e = store_get(r->fs->store, r->view, id, WANT_ATTRS, hold);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && hold->parent != r->l->dir_id))
		return ERR_INVALID_INPUT;
	*ret_class = hold->class;
	return e;
}

static enum err send_children(struct reply *r, int64_t offset)
{
	enum item_class class = CLASS_KEYED;
	struct item hold = { 0 };
	enum err e = ERR_OK;
	if (offset >= STORE_ID_FIRST)
		e = find_position(r, (uint64_t)offset, &class, &hold);
	dir_cursors_next_reply(&r->l->cursors, offset >= STORE_ID_FIRST);
	struct span after = hold.key;
	if (e == ERR_OK && class == CLASS_KEYED) {
		e = send_class(r, CLASS_KEYED, after);
		after = (struct span){ 0 };
	}
	if (e == ERR_OK && !r->full)
		e = send_class(r, CLASS_NAMED, after);
	item_fini(&hold);
	return e;
}

enum err listing_read(struct fs *fs, struct store_view *view, struct listing *l, uid_t uid,
	int64_t offset, bool names, listing_fn fn, void *arg)
{
	struct reply r = { .fs = fs, .view = view, .l = l, .fn = fn, .arg = arg, .names = names };
	enum err e = ERR_OK;
	mutex_lock(&l->lock);
	l->cursors.fixed = !open_quota_may_grow(fs, uid);
	if (offset < AFTER_DOTDOT && !send_dots(&r, offset)) {
		/* full: nothing else fits */
	} else if (offset >= STORE_ID_FIRST || send_controls(&r, offset)) {
		e = send_children(&r, offset);
	}
	open_quota_set(fs->open_quota, &l->held, dir_cursors_holds(&l->cursors));
	mutex_unlock(&l->lock);
	return e;
}
