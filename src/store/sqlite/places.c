/* SPDX-License-Identifier: MIT
 * What apply.c, move.c and reclaim.c have in common: where a place leads, and what a directory
 * learns of a child that came or went. */
#include "store/rules.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/writer.h"

#include <string.h>

enum err sql_item_delete(struct sql_writer *w, const struct item *it)
{
	enum err e = ERR_OK;
	if (it->kind == ITEM_FILE)
		e = sql_content_drop(w, it);
	else if (it->kind == ITEM_PIECE)
		e = sql_pieces_grow(w, it->size, 0);
	else if (item_is_dir(it->kind))
		e = sql_dir_release(w, it->id);
	return e == ERR_OK ? sql_item_take_out(w, it) : e;
}

void sql_found_fini(struct sql_found *f)
{
	item_fini(&f->it);
}

enum err sql_touch(struct sql_writer *w, uint64_t parent, int64_t version, int delta)
{
	struct sql_dir *d;
	enum err e = sql_dir_get(w, parent, &d);
	if (e == ERR_OK)
		sql_dir_touch(d, version, delta);
	return e;
}

enum err sql_check_fits(
	struct sql_writer *w, uint64_t parent, const struct item *child, enum item_class class)
{
	struct sql_dir *d;
	enum err e = sql_dir_get(w, parent, &d);
	if (e != ERR_OK)
		return e;
	if (!rules_fits(&d->it, child, class))
		return ERR_NOT_PERMITTED;
	if (item_is_empty_row(child))
		d->it.flags |= ITEM_HELD_EMPTY; /* the caller touches it */
	return ERR_OK;
}

static enum err make_partition(
	struct sql_writer *w, uint64_t table, struct span pk, int64_t version, uint64_t *ret)
{
	struct item it = {
		.parent = table,
		.kind = ITEM_PARTITION,
		.class = CLASS_KEYED,
		.version = version,
		.attrs = ATTRS_UNSET,
		.key = pk,
	};
	enum err e = sql_item_new_id(w, &it.id);
	if (e == ERR_OK)
		e = sql_item_insert(w, &it, (struct span){ NULL, 0 });
	if (e == ERR_OK)
		e = sql_touch(w, table, version, 1);
	*ret = it.id;
	return e;
}

static enum err find_partition(struct sql_writer *w, const struct item_ref *at, bool make,
	int64_t version, struct sql_found *f)
{
	struct sql_dir *table;
	enum err e = sql_dir_get(w, at->parent, &table);
	if (e == ERR_NOT_FOUND || e == ERR_NOT_PERMITTED ||
		(e == ERR_OK && table->it.kind != ITEM_TABLE))
		return ERR_TABLE_NOT_FOUND;
	if (e == ERR_OK)
		e = sql_partition_find(w, at->parent, at->pk, &f->parent);
	if (e != ERR_NOT_FOUND)
		return e;
	f->parent = 0;
	if (!make)
		return ERR_OK;
	f->made = true;
	return make_partition(w, at->parent, at->pk, version, &f->parent);
}

static enum err find_by_id(struct sql_writer *w, uint64_t id, unsigned want, struct sql_found *f)
{
	enum err e = sql_item_get(w, id, want, &f->it);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_GONE : e;
	f->present = true;
	f->parent = f->it.parent;
	f->class = f->it.class;
	f->key = f->it.key;
	return ERR_OK;
}

/* Fills all but the item. */
enum err sql_find_parent(struct sql_writer *w, const struct item_ref *at, bool make,
	int64_t version, struct sql_found *ret)
{
	struct sql_dir *d;
	*ret = (struct sql_found){ .parent = at->parent, .class = at->class, .key = at->key };
	if (at->has_pk)
		return find_partition(w, at, make, version, ret);
	if (!make)
		return ERR_OK;
	return at->parent ? sql_dir_get(w, at->parent, &d) : ERR_NOT_FOUND;
}

enum err sql_find(struct sql_writer *w, const struct item_ref *at, unsigned want, bool make,
	int64_t version, struct sql_found *ret)
{
	if (at->id != 0) {
		*ret = (struct sql_found){ 0 };
		return find_by_id(w, at->id, want, ret);
	}
	enum err e = sql_find_parent(w, at, make, version, ret);
	if (e != ERR_OK || ret->made || ret->parent == 0)
		return e;
	e = sql_item_child(w, ret->parent, at->class, at->key, want, &ret->it);
	ret->present = e == ERR_OK;
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

/* Whether an earlier change of this set wrote the item: then the same version is right. */
static bool written_before(const struct sql_writer *w, uint64_t id)
{
	for (size_t i = w->at; i-- > 0;) {
		const struct change *c = &w->set[i];
		if (c->op != CHANGE_ATTRS && c->now.id == id)
			return true;
		if (c->op == CHANGE_MOVE && c->flags & CHANGE_EXCHANGE && c->old.id == id)
			return true;
	}
	return false;
}

enum err sql_check_stale(struct sql_writer *w, const struct change *c, const struct item *it)
{
	if (c->version > it->version)
		return ERR_OK;
	if (c->version == it->version && (item_is_dir(it->kind) || written_before(w, it->id)))
		return ERR_OK;
	return ERR_STALE_VERSION;
}

enum err sql_child_gone(struct sql_writer *w, uint64_t parent, struct change *c)
{
	struct sql_dir *d;
	enum err e = sql_dir_get(w, parent, &d);
	if (e != ERR_OK)
		return e;
	sql_dir_touch(d, c->version, -1);
	if (d->it.kind != ITEM_PARTITION || d->it.size > 0 || d->it.flags & ITEM_MADE)
		return ERR_OK;
	if (c->flags & CHANGE_KEEP_DIR) {
		d->it.flags |= ITEM_MADE;
		return ERR_OK;
	}
	e = item_copy(&c->left, &d->it);
	if (e == ERR_OK)
		e = sql_item_delete(w, &c->left);
	return e == ERR_OK ? sql_touch(w, c->left.parent, c->version, -1) : e;
}
