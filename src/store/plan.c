/* SPDX-License-Identifier: MIT
 * What a change set does to a small tree in memory: store.h's sentences, written down a second time
 * and as plainly as possible, so that the suite can compare.  No shortcut is taken. */
#include "store/plan.h"

#include "store/rules.h"

#include <stdlib.h>
#include <string.h>

#define NO_BODY ((struct span){ NULL, 0 })

struct where {
	struct item it; /* a copy; kind is ITEM_NONE if there is nothing */
	uint64_t parent;
	enum item_class class;
	struct span key;
	bool made;
};

static bool there(const struct where *w)
{
	return w->it.kind != ITEM_NONE;
}

/* NULL: there is none, or it could not be read (w->failed). */
static struct node *by_id(struct plan *w, uint64_t id)
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

/* Changes a directory's counters. */
static enum err touch(struct plan *w, uint64_t dir, int64_t version, int delta)
{
	struct node *n = by_id(w, dir);
	if (!n)
		return ERR_NOT_FOUND;
	struct item it = n->it;
	if (version > it.version)
		it.version = version;
	it.attrs.mtime_ns = it.attrs.ctime_ns = TIME_UNSET;
	it.size += (uint64_t)(int64_t)delta;
	return state_replace(w->s, &it, NULL);
}

static enum err insert_new(struct plan *w, struct item *it, int64_t version)
{
	enum err e = w->ops->take_id(w, it, &it->id);
	if (e == ERR_OK)
		e = state_insert(w->s, it, NULL);
	return e == ERR_OK ? touch(w, it->parent, version, 1) : e;
}

static enum err look_pk(
	struct plan *w, const struct item_ref *at, bool make, int64_t version, struct where *ret)
{
	struct node *table = by_id(w, at->parent);
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
	enum err e = insert_new(w, &it, version);
	ret->parent = it.id;
	ret->made = true;
	return e;
}

static enum err look(
	struct plan *w, const struct item_ref *at, bool make, int64_t version, struct where *ret)
{
	struct node *n;
	*ret = (struct where){ .parent = at->parent, .class = at->class, .key = at->key };
	if (at->id != 0) {
		n = by_id(w, at->id);
		if (!n)
			return ERR_GONE;
	} else {
		if (at->has_pk) {
			enum err e = look_pk(w, at, make, version, ret);
			if (e != ERR_OK)
				return e;
		} else if (make) {
			struct node *dir = at->parent ? by_id(w, at->parent) : NULL;
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

/* All changes of a set stand in one directory.  A partition that went and came back in between
 * has another id and is the same one. */
static enum err stay_inside(struct plan *w, uint64_t dir)
{
	struct node *n = by_id(w, dir);
	if (w->abilities & STORE_CAN_SPAN || !n || n->it.id == w->unit.id)
		return ERR_OK;
	if (w->unit.kind == ITEM_NONE)
		return item_copy(&w->unit, &n->it);
	bool same = n->it.kind == ITEM_PARTITION && n->it.parent == w->unit.parent &&
		span_eq(n->it.key, w->unit.key);
	return same ? ERR_OK : ERR_CROSS_DEVICE;
}

static enum err fits(
	struct plan *w, uint64_t parent, const struct item *child, enum item_class class)
{
	struct node *p = by_id(w, parent);
	if (!p)
		return ERR_NOT_FOUND;
	if (!rules_fits(&p->it, child, class))
		return ERR_NOT_PERMITTED;
	struct item it = p->it;
	it.flags |= ITEM_HELD_EMPTY;
	return item_is_empty_row(child) ? state_replace(w->s, &it, NULL) : ERR_OK;
}

static enum err stale(struct plan *w, const struct change *c, const struct item *it)
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

static enum err give(struct item *to, const struct item *from, bool body)
{
	struct item it = *from;
	if (!body)
		it.body = NO_BODY;
	enum err e = item_copy(to, &it);
	to->flags &= ITEM_FLAGS_PUBLIC;
	return e;
}

static enum err give_old(struct change *c, const struct item *it)
{
	return c->flags & CHANGE_WANT_OLD ? give(&c->old, it, true) : ERR_OK;
}

static enum err empty_goes(struct plan *w, uint64_t id, struct change *c)
{
	struct node *n = by_id(w, id);
	enum err e = n ? give(&c->left, &n->it, false) : ERR_NOT_FOUND;
	if (e != ERR_OK)
		return e;
	state_remove(w->s, id);
	return touch(w, c->left.parent, c->version, -1);
}

static enum err child_gone(struct plan *w, uint64_t parent, struct change *c)
{
	enum err e = touch(w, parent, c->version, -1);
	if (e != ERR_OK)
		return e;
	struct node *n = by_id(w, parent);
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
		return empty_goes(w, parent, c);
	w->emptied = parent;
	w->emptied_by = c;
	return ERR_OK;
}

static enum err grow(struct plan *w, uint64_t from, uint64_t to)
{
	if (to > from && w->file_bytes - from + to > w->limit_files)
		return ERR_QUOTA;
	w->file_bytes = w->file_bytes - from + to;
	return ERR_OK;
}

static enum err put_new(struct plan *w, struct change *c, const struct where *at)
{
	bool body = rules_has_body(c->kind);
	struct item it = {
		.parent = at->parent,
		.kind = c->kind,
		.class = at->class,
		.flags = c->item_flags & ITEM_FLAGS_PUBLIC,
		.generation = c->kind == ITEM_ROW ? 1 : 0,
		.version = c->version,
		.born = item_is_dir(c->kind) ? 0 : c->version,
		.attrs = c->attrs,
		.size = rules_body_is_content(c->kind) ? c->body.n : 0,
		.key = at->key.p ? at->key : SPAN_LIT(""),
		.name = c->kind == ITEM_TABLE && c->name.p ? c->name : SPAN_LIT(""),
		.body = !body       ? NO_BODY
			: c->body.p ? c->body
				    : SPAN_LIT(""),
	};
	enum err e = fits(w, at->parent, &it, at->class);
	if (e == ERR_OK)
		e = insert_new(w, &it, c->version);
	return e == ERR_OK ? give(&c->now, &it, false) : e;
}

static enum err put_over(struct plan *w, struct change *c, struct item it)
{
	enum err e = stale(w, c, &it);
	if (e == ERR_OK)
		e = give_old(c, &it);
	if (e != ERR_OK)
		return e;
	if (rules_body_is_content(c->kind)) {
		rules_moved(&it, c->kind, true, c->item_flags);
		it.size = c->body.n;
	}
	it.attrs = rules_attrs_replaced(&it.attrs, &c->attrs);
	it.version = c->version;
	it.body = c->body.p ? c->body : SPAN_LIT("");
	e = state_replace(w->s, &it, NULL);
	return e == ERR_OK ? give(&c->now, &it, false) : e;
}

static enum err put(struct plan *w, struct change *c, struct where *at)
{
	if (!there(at))
		return put_new(w, c, at);
	if (rules_put_replaces(c, &at->it))
		return put_over(w, c, at->it);
	return rules_exists(at->it.kind);
}

static enum err leave_file(struct plan *w, struct change *c, const struct item *row)
{
	struct where to = { 0 };
	struct item file = rules_file_left(row, c);
	enum err e = look(w, &c->to, true, c->version, &to);
	if (e == ERR_OK)
		e = stay_inside(w, to.parent);
	if (e == ERR_OK && there(&to))
		e = rules_exists(to.it.kind);
	if (e == ERR_OK)
		e = fits(w, to.parent, &file, to.class);
	if (e == ERR_OK && file.size > w->limit_file)
		e = ERR_FILE_TOO_LARGE;
	if (e == ERR_OK)
		e = grow(w, 0, file.size);
	if (e == ERR_OK && file.id == 0)
		e = w->ops->take_id(w, &file, &file.id);
	char *data = NULL;
	if (e == ERR_OK)
		e = w->ops->content(w, NULL, file.id, file.size, 0, row->body, &data);
	if (e == ERR_OK) {
		file.parent = to.parent;
		file.class = to.class;
		file.key = to.key;
		e = state_insert(w->s, &file, data);
	}
	if (e == ERR_OK)
		e = touch(w, file.parent, c->version, 1);
	item_fini(&to.it);
	return e;
}

static enum err take_away(struct plan *w, struct change *c, const struct item *it)
{
	if (it->id <= STORE_ID_FIRST)
		return ERR_NOT_PERMITTED;
	if (item_is_dir(it->kind) && it->size > 0 && !(c->flags & CHANGE_RECURSIVE))
		return ERR_NOT_EMPTY;
	if (c->flags & CHANGE_TO_FILE && it->kind != ITEM_ROW)
		return ERR_INVALID_INPUT;
	enum err e = stale(w, c, it);
	if (e == ERR_OK && c->flags & CHANGE_TO_FILE)
		e = leave_file(w, c, it);
	if (e != ERR_OK)
		return e;
	uint64_t before = state_file_bytes(w->s);
	state_remove_below(w->s, it->id);
	state_remove(w->s, it->id);
	w->file_bytes -= before - state_file_bytes(w->s);
	e = give(&c->now, it, false);
	if (e == ERR_OK)
		e = give_old(c, it);
	return e == ERR_OK ? child_gone(w, it->parent, c) : e;
}

static enum err set_attrs(struct plan *w, struct change *c, struct item it)
{
	rules_attrs_set(&it, c);
	enum err e = state_replace(w->s, &it, NULL);
	return e == ERR_OK ? give(&c->now, &it, false) : e;
}

static enum err write_file(struct plan *w, struct change *c, struct item it)
{
	uint64_t size;
	enum err e = rules_new_size(c, &it, w->limit_file, &size);
	if (e == ERR_OK)
		e = stale(w, c, &it);
	if (e == ERR_OK)
		e = give_old(c, &it);
	if (e == ERR_OK)
		e = grow(w, it.size, size);
	if (e != ERR_OK)
		return e;
	char *data;
	struct span bytes = c->op == CHANGE_WRITE ? c->body : NO_BODY;
	e = w->ops->content(w, &it, it.id, size, c->offset, bytes, &data);
	if (e != ERR_OK)
		return e;
	it.size = size;
	it.version = c->version;
	it.attrs.mtime_ns = it.attrs.ctime_ns = TIME_UNSET;
	e = state_replace(w->s, &it, data);
	return e == ERR_OK ? give(&c->now, &it, false) : e;
}

/* ---- moving ---- */

struct turn { /* what one of the items becomes */
	enum item_kind kind;
	struct span body;
	uint32_t flags;
};

static enum err may_move(struct plan *w, const struct change *c, const struct item *it,
	const struct turn *t, uint64_t parent, enum item_class class)
{
	const struct item will = {
		.kind = t->kind != ITEM_NONE ? t->kind : it->kind,
		.size = t->body.p ? t->body.n : it->size,
	};
	if (it->id <= STORE_ID_FIRST)
		return ERR_NOT_PERMITTED;
	enum err e = rules_convert(it->kind, t->kind, t->body.p != NULL);
	if (e == ERR_OK)
		e = fits(w, parent, &will, class);
	if (e != ERR_OK)
		return e;
	for (uint64_t up = item_is_dir(it->kind) ? parent : 0; up != 0;) {
		if (up == it->id)
			return ERR_INVALID_INPUT;
		struct node *n = by_id(w, up);
		up = n ? n->it.parent : 0;
	}
	return stale(w, c, it);
}

/* The item as it will be; its content goes into *ret_data (NULL: as it was). */
static enum err turned(struct plan *w, const struct change *c, const struct item *was,
	const struct turn *t, struct item *will, char **ret_data)
{
	*will = *was;
	*ret_data = NULL;
	will->attrs = rules_attrs_moved(was);
	will->version = c->version;
	rules_moved(will, t->kind, t->body.p != NULL, t->flags);
	if (t->body.p) {
		will->body = t->body;
		will->size = t->body.n;
	}
	if (was->kind == ITEM_FILE && will->kind == ITEM_ROW)
		w->file_bytes -= was->size;
	struct span bytes = will->body;
	if (will->kind == ITEM_FILE)
		will->body = NO_BODY;
	if (will->kind != ITEM_FILE || was->kind == ITEM_FILE)
		return ERR_OK;
	if (bytes.n > w->limit_file)
		return ERR_FILE_TOO_LARGE;
	enum err e = grow(w, 0, bytes.n);
	return e == ERR_OK ? w->ops->content(w, NULL, was->id, bytes.n, 0, bytes, ret_data) : e;
}

static enum err replaceable(
	struct plan *w, const struct change *c, const struct item *it, const struct item *old)
{
	if (old->id <= STORE_ID_FIRST)
		return ERR_NOT_PERMITTED;
	if (c->flags & CHANGE_NO_REPLACE)
		return rules_exists(old->kind);
	if (item_is_dir(old->kind) && !item_is_dir(it->kind))
		return ERR_IS_A_DIRECTORY;
	if (!item_is_dir(old->kind) && item_is_dir(it->kind))
		return ERR_NOT_A_DIRECTORY;
	if (item_is_dir(old->kind) && old->size > 0)
		return ERR_NOT_EMPTY;
	return stale(w, c, old);
}

static void rename_table(const struct change *c, struct item *it)
{
	if (it->kind == ITEM_TABLE && c->name.n > 0)
		it->name = c->name;
}

static enum err move_self(
	struct plan *w, struct change *c, const struct item *it, const struct turn *t)
{
	bool renamed = it->kind == ITEM_TABLE && c->name.n > 0 && !span_eq(c->name, it->name);
	bool same = (t->kind == ITEM_NONE || t->kind == it->kind) && !t->body.p && !renamed;
	if (same)
		return c->flags & CHANGE_NO_REPLACE ? rules_exists(it->kind)
						    : give(&c->now, it, false);
	enum err e = may_move(w, c, it, t, it->parent, it->class);
	if (e != ERR_OK)
		return e;
	struct item will;
	char *data;
	e = turned(w, c, it, t, &will, &data);
	if (e != ERR_OK)
		return e;
	rename_table(c, &will);
	e = state_replace(w->s, &will, data);
	if (e == ERR_OK)
		e = touch(w, it->parent, c->version, 0);
	if (e == ERR_OK)
		e = give_old(c, it);
	return e == ERR_OK ? give(&c->now, &will, false) : e;
}

static enum err move(struct plan *w, struct change *c, const struct item *it, const struct turn *t,
	const struct where *to)
{
	enum err e = may_move(w, c, it, t, to->parent, to->class);
	if (e == ERR_OK && there(to))
		e = replaceable(w, c, it, &to->it);
	if (e != ERR_OK)
		return e;
	if (there(to)) {
		state_remove(w->s, to->it.id);
		if (to->it.kind == ITEM_FILE)
			w->file_bytes -= to->it.size;
		e = give_old(c, &to->it);
		if (e != ERR_OK)
			return e;
	}
	struct item will;
	char *data;
	e = turned(w, c, it, t, &will, &data);
	if (e != ERR_OK)
		return e;
	will.parent = to->parent;
	will.class = to->class;
	will.key = to->key.p ? to->key : SPAN_LIT("");
	rename_table(c, &will);
	e = state_replace(w->s, &will, data);
	if (e == ERR_OK)
		e = touch(w, to->parent, c->version, there(to) ? 0 : 1);
	if (e == ERR_OK)
		e = child_gone(w, it->parent, c);
	return e == ERR_OK ? give(&c->now, &will, false) : e;
}

static enum err exchange(struct plan *w, struct change *c, const struct item *it,
	const struct turn *t, const struct where *to)
{
	const struct item *other = &to->it;
	struct turn u = { c->other_kind, c->other_body, c->other_flags };
	struct item will, other_will;
	char *data, *other_data;
	if (!there(to))
		return ERR_NOT_FOUND;
	enum err e = may_move(w, c, it, t, other->parent, other->class);
	if (e == ERR_OK)
		e = may_move(w, c, other, &u, it->parent, it->class);
	if (e == ERR_OK)
		e = turned(w, c, it, t, &will, &data);
	if (e != ERR_OK)
		return e;
	e = turned(w, c, other, &u, &other_will, &other_data);
	if (e != ERR_OK) {
		free(data);
		return e;
	}
	will.parent = other->parent;
	will.class = other->class;
	will.key = other->key;
	rename_table(c, &will);
	other_will.parent = it->parent;
	other_will.class = it->class;
	other_will.key = it->key;
	e = state_replace(w->s, &will, data);
	if (e != ERR_OK) {
		free(other_data);
		return e;
	}
	e = state_replace(w->s, &other_will, other_data);
	if (e == ERR_OK)
		e = touch(w, it->parent, c->version, 0);
	if (e == ERR_OK)
		e = touch(w, other->parent, c->version, 0);
	if (e == ERR_OK)
		e = give_old(c, other);
	return e == ERR_OK ? give(&c->now, &will, false) : e;
}

static enum err move_any(struct plan *w, struct change *c, const struct item *it)
{
	struct where to;
	struct turn t = { c->to_kind, c->body, c->item_flags };
	enum err e = look(w, &c->to, true, c->version, &to);
	c->made_partition = to.made;
	bool dirs =
		item_is_dir(it->kind) || (c->flags & CHANGE_EXCHANGE && item_is_dir(to.it.kind));
	if (e == ERR_OK && dirs && !(w->abilities & STORE_CAN_MOVE_DIRS))
		e = ERR_CROSS_DEVICE;
	if (e == ERR_OK)
		e = stay_inside(w, to.parent);
	if (e == ERR_OK)
		e = rules_to_match(c, there(&to) ? &to.it : NULL);
	if (e == ERR_OK && there(&to) && to.it.id == it->id)
		e = move_self(w, c, it, &t);
	else if (e == ERR_OK && c->flags & CHANGE_EXCHANGE)
		e = exchange(w, c, it, &t, &to);
	else if (e == ERR_OK)
		e = move(w, c, it, &t, &to);
	item_fini(&to.it);
	return e;
}

/* ---- one change ---- */

static enum err change_it(struct plan *w, struct change *c, struct item *it)
{
	switch (c->op) {
	case CHANGE_DELETE:
		return take_away(w, c, it);
	case CHANGE_MOVE:
		return move_any(w, c, it);
	case CHANGE_ATTRS:
		return set_attrs(w, c, *it);
	case CHANGE_WRITE:
	case CHANGE_RESIZE:
		return write_file(w, c, *it);
	case CHANGE_PUT:
		break;
	}
	return ERR_INVALID_INPUT;
}

enum err plan_change(struct plan *w, struct change *c)
{
	struct where at = { 0 };
	if (c->op == CHANGE_PUT && c->kind == ITEM_NONE)
		return ERR_INVALID_INPUT;
	enum err e = look(w, &c->at, c->op == CHANGE_PUT, c->version, &at);
	if (e == ERR_OK)
		e = rules_cond(c, there(&at) ? &at.it : NULL);
	bool itself = (c->op == CHANGE_ATTRS || c->op == CHANGE_PUT) && item_is_dir(at.it.kind);
	if (e == ERR_OK)
		e = stay_inside(w, itself ? at.it.id : at.parent);
	if (c->op == CHANGE_PUT)
		c->made_partition = at.made;
	if (e == ERR_OK && c->op == CHANGE_PUT)
		e = put(w, c, &at);
	else if (e == ERR_OK)
		e = there(&at) ? change_it(w, c, &at.it) : ERR_NOT_FOUND;
	item_fini(&at.it);
	return w->failed != ERR_OK ? w->failed : e;
}

enum err plan_end(struct plan *w)
{
	struct node *n = w->emptied ? by_id(w, w->emptied) : NULL;
	if (!n || n->it.size > 0 || n->it.flags & ITEM_MADE) {
		w->emptied = 0;
		return w->failed;
	}
	return empty_goes(w, w->emptied, w->emptied_by);
}
