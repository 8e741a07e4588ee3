/* SPDX-License-Identifier: MIT */
#include "store/plan_move.h"

#include "store/plan_steps.h"
#include "store/rules.h"

#include <stdlib.h>

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
		e = plan_check_fit(w, parent, &will, class);
	if (e != ERR_OK)
		return e;
	for (uint64_t up = item_is_dir(it->kind) ? parent : 0; up != 0;) {
		if (up == it->id)
			return ERR_INVALID_INPUT;
		struct node *n = plan_by_id(w, up);
		up = n ? n->it.parent : 0;
	}
	return plan_check_version(w, c, it);
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
	if (will->kind == ITEM_PIECE)
		return plan_grow_pieces(w, was->size, will->size);
	if (will->kind != ITEM_FILE || was->kind == ITEM_FILE)
		return ERR_OK;
	if (bytes.n > w->limit_file)
		return ERR_FILE_TOO_LARGE;
	enum err e = plan_grow_files(w, 0, bytes.n);
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
	return plan_check_version(w, c, old);
}

static void rename_table(const struct change *c, struct item *it)
{
	if (it->kind == ITEM_TABLE && c->name.n > 0)
		it->name = c->name;
}

/* Puts the item, as the rename makes it, at the parent, class and key of `at`. */
static enum err put_moved(struct plan *w, const struct change *c, const struct item *it,
	const struct turn *t, const struct item *at, struct item *will)
{
	char *data;
	enum err e = turned(w, c, it, t, will, &data);
	if (e != ERR_OK)
		return e;
	will->parent = at->parent;
	will->class = at->class;
	will->key = at->key;
	rename_table(c, will);
	return state_replace(w->s, will, data);
}

static enum err move_self(
	struct plan *w, struct change *c, const struct item *it, const struct turn *t)
{
	bool renamed = it->kind == ITEM_TABLE && c->name.n > 0 && !span_eq(c->name, it->name);
	bool same = (t->kind == ITEM_NONE || t->kind == it->kind) && !t->body.p && !renamed;
	if (same)
		return c->flags & CHANGE_NO_REPLACE ? rules_exists(it->kind)
						    : plan_give(&c->now, it, false);
	enum err e = may_move(w, c, it, t, it->parent, it->class);
	if (e != ERR_OK)
		return e;
	struct item will;
	e = put_moved(w, c, it, t, it, &will);
	if (e == ERR_OK)
		e = plan_touch(w, it->parent, c->version, 0);
	if (e == ERR_OK)
		e = plan_give_old(c, it);
	return e == ERR_OK ? plan_give(&c->now, &will, false) : e;
}

static enum err move(struct plan *w, struct change *c, const struct item *it, const struct turn *t,
	const struct plan_place *to)
{
	enum err e = may_move(w, c, it, t, to->parent, to->class);
	if (e == ERR_OK && plan_found(to))
		e = replaceable(w, c, it, &to->it);
	if (e != ERR_OK)
		return e;
	if (plan_found(to)) {
		state_remove(w->s, to->it.id);
		if (to->it.kind == ITEM_FILE)
			w->file_bytes -= to->it.size;
		if (to->it.kind == ITEM_PIECE)
			w->piece_bytes -= to->it.size;
		e = plan_give_old(c, &to->it);
		if (e != ERR_OK)
			return e;
	}
	const struct item at = {
		.parent = to->parent, .class = to->class, .key = to->key.p ? to->key : SPAN_LIT("")
	};
	struct item will;
	e = put_moved(w, c, it, t, &at, &will);
	if (e == ERR_OK)
		e = plan_touch(w, to->parent, c->version, plan_found(to) ? 0 : 1);
	if (e == ERR_OK)
		e = plan_child_gone(w, it->parent, c);
	return e == ERR_OK ? plan_give(&c->now, &will, false) : e;
}

static enum err exchange(struct plan *w, struct change *c, const struct item *it,
	const struct turn *t, const struct plan_place *to)
{
	const struct item *other = &to->it;
	struct turn u = { c->other_kind, c->other_body, c->other_flags };
	struct item will, other_will;
	char *data, *other_data;
	if (!plan_found(to))
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
		e = plan_touch(w, it->parent, c->version, 0);
	if (e == ERR_OK)
		e = plan_touch(w, other->parent, c->version, 0);
	if (e == ERR_OK)
		e = plan_give_old(c, other);
	return e == ERR_OK ? plan_give(&c->now, &will, false) : e;
}

enum err plan_move(struct plan *w, struct change *c, const struct item *it)
{
	struct plan_place to;
	struct turn t = { c->to_kind, c->body, c->item_flags };
	enum err e = plan_find(w, &c->to, true, c->version, &to);
	c->made_partition = to.made;
	bool dirs =
		item_is_dir(it->kind) || (c->flags & CHANGE_EXCHANGE && item_is_dir(to.it.kind));
	if (e == ERR_OK && dirs && !(w->abilities & STORE_CAN_MOVE_DIRS))
		e = ERR_CROSS_DEVICE;
	if (e == ERR_OK)
		e = plan_stay_inside(w, to.parent);
	if (e == ERR_OK)
		e = rules_to_match(c, plan_found(&to) ? &to.it : NULL);
	if (e == ERR_OK && plan_found(&to) && to.it.id == it->id)
		e = move_self(w, c, it, &t);
	else if (e == ERR_OK && c->flags & CHANGE_EXCHANGE)
		e = exchange(w, c, it, &t, &to);
	else if (e == ERR_OK)
		e = move(w, c, it, &t, &to);
	item_fini(&to.it);
	return e;
}
