/* SPDX-License-Identifier: MIT */
#include "store/plan_steps.h"

#include "store/rules.h"

bool plan_found(const struct plan_place *w)
{
	return w->it.kind != ITEM_NONE;
}

struct node *plan_by_id(struct plan *w, uint64_t id)
{
	struct node *n = state_by_id(w->s, id);
	if (n || !w->ops->load_id || w->failed != ERR_OK)
		return n;
	w->failed = w->ops->load_id(w, id);
	return w->failed == ERR_OK ? state_by_id(w->s, id) : NULL;
}

static struct node *child(struct plan *w, uint64_t parent, enum item_class class, struct span key)
{
	struct node *n = state_child(w->s, parent, class, key);
	if (n || !w->ops->load_child || w->failed != ERR_OK)
		return n;
	w->failed = w->ops->load_child(w, parent, class, key);
	return w->failed == ERR_OK ? state_child(w->s, parent, class, key) : NULL;
}

enum err plan_touch(struct plan *w, uint64_t dir, int64_t version, int delta)
{
	struct node *n = plan_by_id(w, dir);
	if (!n)
		return ERR_NOT_FOUND;
	struct item it = n->it;
	if (version > it.version)
		it.version = version;
	it.attrs.mtime_ns = it.attrs.ctime_ns = TIME_UNSET;
	it.size += (uint64_t)(int64_t)delta;
	return state_replace(w->s, &it, NULL);
}

enum err plan_insert(struct plan *w, struct item *it, int64_t version)
{
	enum err e = w->ops->take_id(w, it, &it->id);
	if (e == ERR_OK)
		e = state_insert(w->s, it, NULL);
	return e == ERR_OK ? plan_touch(w, it->parent, version, 1) : e;
}

static enum err look_pk(struct plan *w, const struct item_ref *at, bool make, int64_t version,
	struct plan_place *ret)
{
	struct node *table = plan_by_id(w, at->parent);
	if (!table || table->it.kind != ITEM_TABLE)
		return ERR_TABLE_NOT_FOUND;
	struct node *p = child(w, at->parent, CLASS_KEYED, at->pk);
	ret->parent = p ? p->it.id : 0;
	if (p || !make)
		return ERR_OK;
	struct item it = {
		.parent = at->parent,
		.kind = ITEM_PARTITION,
		.version = version,
		.attrs = ATTRS_UNSET,
		.key = at->pk,
		.name = SPAN_LIT(""),
	};
	enum err e = plan_insert(w, &it, version);
	ret->parent = it.id;
	ret->made = true;
	return e;
}

enum err plan_find(struct plan *w, const struct item_ref *at, bool make, int64_t version,
	struct plan_place *ret)
{
	struct node *n;
	*ret = (struct plan_place){ .parent = at->parent, .class = at->class, .key = at->key };
	if (at->id != 0) {
		n = plan_by_id(w, at->id);
		if (!n)
			return ERR_GONE;
	} else {
		if (at->has_pk) {
			enum err e = look_pk(w, at, make, version, ret);
			if (e != ERR_OK)
				return e;
		} else if (make) {
			struct node *dir = at->parent ? plan_by_id(w, at->parent) : NULL;
			if (!dir)
				return ERR_NOT_FOUND;
			if (!item_is_dir(dir->it.kind))
				return ERR_NOT_PERMITTED;
		}
		n = ret->parent ? child(w, ret->parent, at->class, at->key) : NULL;
		if (!n)
			return ERR_OK;
	}
	enum err e = item_copy(&ret->it, &n->it);
	ret->parent = n->it.parent;
	ret->class = n->it.class;
	ret->key = ret->it.key;
	return e;
}

enum err plan_stay_inside(struct plan *w, uint64_t dir)
{
	struct node *n = plan_by_id(w, dir);
	if (w->abilities & STORE_CAN_SPAN || !n || n->it.id == w->unit.id)
		return ERR_OK;
	if (w->unit.kind == ITEM_NONE)
		return item_copy(&w->unit, &n->it);
	bool same = n->it.kind == ITEM_PARTITION && n->it.parent == w->unit.parent &&
		span_eq(n->it.key, w->unit.key);
	return same ? ERR_OK : ERR_CROSS_DEVICE;
}

enum err plan_check_fit(
	struct plan *w, uint64_t parent, const struct item *child, enum item_class class)
{
	struct node *p = plan_by_id(w, parent);
	if (!p)
		return ERR_NOT_FOUND;
	if (!rules_fits(&p->it, child, class))
		return ERR_NOT_PERMITTED;
	struct item it = p->it;
	it.flags |= ITEM_HELD_EMPTY;
	return item_is_empty_row(child) ? state_replace(w->s, &it, NULL) : ERR_OK;
}

enum err plan_check_version(struct plan *w, const struct change *c, const struct item *it)
{
	if (c->version > it->version)
		return ERR_OK;
	if (c->version < it->version)
		return ERR_STALE_VERSION;
	if (item_is_dir(it->kind))
		return ERR_OK;
	for (size_t i = 0; i < w->at; i++) {
		const struct change *b = &w->set[i];
		if (b->op == CHANGE_ATTRS)
			continue;
		if (b->now.id == it->id || (b->flags & CHANGE_EXCHANGE && b->old.id == it->id))
			return ERR_OK;
	}
	return ERR_STALE_VERSION;
}

enum err plan_give(struct item *to, const struct item *from, bool body)
{
	struct item it = *from;
	if (!body)
		it.body = NO_BODY;
	enum err e = item_copy(to, &it);
	to->flags &= ITEM_FLAGS_PUBLIC;
	return e;
}

enum err plan_give_old(struct change *c, const struct item *it)
{
	return c->flags & CHANGE_WANT_OLD ? plan_give(&c->old, it, true) : ERR_OK;
}

enum err plan_remove_empty(struct plan *w, uint64_t id, struct change *c)
{
	struct node *n = plan_by_id(w, id);
	enum err e = n ? plan_give(&c->left, &n->it, false) : ERR_NOT_FOUND;
	if (e != ERR_OK)
		return e;
	state_remove(w->s, id);
	return plan_touch(w, c->left.parent, c->version, -1);
}

enum err plan_child_gone(struct plan *w, uint64_t parent, struct change *c)
{
	enum err e = plan_touch(w, parent, c->version, -1);
	if (e != ERR_OK)
		return e;
	struct node *n = plan_by_id(w, parent);
	if (!n)
		return ERR_NOT_FOUND;
	struct item it = n->it;
	if (it.kind != ITEM_PARTITION || it.size > 0 || it.flags & ITEM_MADE)
		return ERR_OK;
	if (c->flags & CHANGE_KEEP_DIR) {
		it.flags |= ITEM_MADE;
		return state_replace(w->s, &it, NULL);
	}
	if (!w->empties_late)
		return plan_remove_empty(w, parent, c);
	w->emptied = parent;
	w->emptied_by = c;
	return ERR_OK;
}

enum err plan_grow_files(struct plan *w, uint64_t from, uint64_t to)
{
	if (to > from && w->file_bytes - from + to > w->limit_files)
		return ERR_QUOTA;
	w->file_bytes = w->file_bytes - from + to;
	return ERR_OK;
}

enum err plan_grow_pieces(struct plan *w, uint64_t from, uint64_t to)
{
	if (to > from && w->piece_bytes - from + to > w->limit_pieces)
		return ERR_BLOB_SPACE;
	w->piece_bytes = w->piece_bytes - from + to;
	return ERR_OK;
}
