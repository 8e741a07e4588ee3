/* SPDX-License-Identifier: MIT */
#include "service/tree/tree.h"

#include "model/limits.h"
#include "service/core/accounts.h"
#include "service/tree/tree_parts.h"

#include <stdio.h>

/* Applies one change and moves its item to the caller. */
static enum err apply_one(struct service *s, enum origin origin, struct change *c, struct item *ret,
	struct err_detail *detail)
{
	enum err e = service_apply(s, origin, c, 1, false, detail);
	if (e == ERR_OK && ret != NULL) {
		*ret = c->now;
		c->now = (struct item){ 0 };
	}
	changes_fini(c, 1);
	return e;
}

static enum item_kind child_dir_kind(const struct dentry *at)
{
	if (at->class == CLASS_NAMED)
		return ITEM_FOLDER;
	if (at->dir->id == STORE_ROOT)
		return ITEM_ACCOUNT;
	if (at->dir->kind == ITEM_ACCOUNT)
		return ITEM_TABLE;
	if (at->dir->kind == ITEM_TABLE)
		return ITEM_PARTITION;
	return ITEM_NONE;
}

enum err tree_mkdir(struct service *s, const struct dentry *at, const struct attrs *attrs,
	struct item *ret, struct err_detail *detail)
{
	struct change c = { .op = CHANGE_PUT, .at = tree__place_of(at), .cond = COND_ABSENT };
	c.kind = child_dir_kind(at);
	c.name = at->name;
	c.item_flags = ITEM_MADE;
	c.attrs = *attrs;
	if (c.kind == ITEM_NONE)
		return ERR_NOT_PERMITTED;
	if (c.kind != ITEM_ACCOUNT)
		return apply_one(s, at->origin, &c, ret, detail);

	struct buf body = BUF_INIT(4096);
	enum err e = account_fresh_body(&body);
	c.body = buf_span(&body);
	if (e == ERR_OK)
		e = apply_one(s, at->origin, &c, ret, detail);
	buf_wipe(&body);
	return e;
}

enum err tree_rmdir(struct service *s, const struct dentry *at, struct err_detail *detail)
{
	struct change c = {
		.op = CHANGE_DELETE, .at = tree__place_of(at), .flags = CHANGE_KEEP_DIR
	};
	c.cond = COND_PRESENT;
	return apply_one(s, at->origin, &c, NULL, detail);
}

enum err tree_remove(struct service *s, const struct dentry *at, struct err_detail *detail)
{
	struct change c = { .op = CHANGE_DELETE,
		.at = tree__place_of(at),
		.flags = CHANGE_RECURSIVE,
		.cond = COND_PRESENT,
		.attrs = ATTRS_UNSET };
	enum err e = service_apply(s, at->origin, &c, 1, true, detail);
	changes_fini(&c, 1);
	return e;
}

enum err tree_unlink(struct service *s, const struct dentry *at, struct item *ret_gone,
	struct err_detail *detail)
{
	struct change c = {
		.op = CHANGE_DELETE, .at = tree__place_of(at), .flags = CHANGE_KEEP_DIR
	};
	if (ret_gone != NULL)
		c.flags |= CHANGE_WANT_OLD;
	enum err e = service_apply(s, at->origin, &c, 1, false, detail);
	if (e == ERR_OK && ret_gone != NULL) {
		*ret_gone = c.old;
		c.old = (struct item){ 0 };
	}
	changes_fini(&c, 1);
	return e;
}

struct change tree__orphan(struct item_ref at, uint64_t id, char key[24])
{
	struct change c = { .op = CHANGE_MOVE, .at = at, .attrs = ATTRS_UNSET };
	int n = snprintf(key, 24, "%llu", (unsigned long long)id);
	c.to = (struct item_ref){ .parent = STORE_ORPHANS, .class = CLASS_NAMED };
	c.to.key = span_make(key, (size_t)n);
	c.cond = COND_ID;
	c.cond_version = (int64_t)id;
	c.flags = CHANGE_KEEP_DIR;
	return c;
}

enum err tree_orphan(struct service *s, const struct dentry *at, struct err_detail *detail)
{
	if (!service_can(s, STORE_CAN_SPAN))
		return tree_unlink(s, at, NULL, detail);
	struct item it = { 0 };
	enum err e = store_child(
		service_store(s), NULL, at->dir->id, at->class, at->key, WANT_ATTRS, &it);
	if (e == ERR_OK) {
		char key[24];
		struct change c = tree__orphan(tree__place_of(at), it.id, key);
		e = apply_one(s, at->origin, &c, NULL, detail);
	}
	item_fini(&it);
	return e;
}

enum err tree_drop(struct service *s, uint64_t id)
{
	struct change c = { .op = CHANGE_DELETE, .at = { .id = id }, .attrs = ATTRS_UNSET };
	return apply_one(s, ORIGIN_MOUNT, &c, NULL, NULL);
}

static bool first_id(void *arg, const struct item *it)
{
	*(uint64_t *)arg = it->id;
	return false;
}

enum err tree_drop_orphans(struct service *s)
{
	for (;;) {
		uint64_t id = 0;
		enum err e = store_list(service_store(s), NULL, STORE_ORPHANS, CLASS_NAMED,
			(struct span){ 0 }, false, WANT_ATTRS, first_id, &id);
		if (e != ERR_OK || id == 0)
			return e;
		e = tree_drop(s, id);
		if (e != ERR_OK)
			return e;
	}
}

enum err tree_create_file(struct service *s, const struct dentry *at, const struct attrs *attrs,
	struct item *ret, struct err_detail *detail)
{
	struct change c = { .op = CHANGE_PUT, .at = tree__place_of(at), .cond = COND_ABSENT };
	c.kind = at->class == CLASS_KEYED ? ITEM_ROW : ITEM_FILE;
	c.attrs = *attrs;
	return apply_one(s, at->origin, &c, ret, detail);
}

enum err tree_set_attrs(
	struct service *s, uint64_t id, const struct attrs *attrs, uint32_t mask, struct item *ret)
{
	struct change c = { .op = CHANGE_ATTRS, .at = { .id = id }, .attrs = *attrs };
	c.set_mask = mask;
	return apply_one(s, ORIGIN_MOUNT, &c, ret, NULL);
}

enum err tree_file_write(
	struct service *s, uint64_t id, uint64_t offset, struct span bytes, struct item *ret)
{
	struct change c = { .op = CHANGE_WRITE, .at = { .id = id }, .offset = offset };
	c.body = bytes;
	c.attrs = ATTRS_UNSET;
	return apply_one(s, ORIGIN_MOUNT, &c, ret, NULL);
}

enum err tree_file_resize(struct service *s, uint64_t id, uint64_t size, struct item *ret)
{
	struct change c = { .op = CHANGE_RESIZE, .at = { .id = id }, .offset = size };
	c.attrs = ATTRS_UNSET;
	return apply_one(s, ORIGIN_MOUNT, &c, ret, NULL);
}

enum err tree_file_content(struct service *s, const struct item *file, struct buf *out)
{
	if (file->size > LIMIT_DOCUMENT_BYTES)
		return ERR_NOT_AN_ENTITY;
	if (!buf_resize(out, (size_t)file->size))
		return buf_full(out) == ERR_NO_MEMORY ? ERR_NO_MEMORY : ERR_NOT_AN_ENTITY;
	size_t at = 0, n = 1;
	while (at < out->len && n > 0) {
		enum err e = store_file_read(
			service_store(s), NULL, file->id, at, out->data + at, out->len - at, &n);
		if (e != ERR_OK)
			return e;
		at += n;
	}
	return at == out->len ? ERR_OK : ERR_GONE;
}
