/* SPDX-License-Identifier: MIT
 * What a change set does to a small tree in memory: store.h's sentences, written down a second time
 * and as plainly as possible, so that the suite can compare.  No shortcut is taken. */
#include "store/plan.h"

#include "store/plan_move.h"
#include "store/plan_steps.h"
#include "store/rules.h"

static enum err put_new(struct plan *w, struct change *c, const struct plan_place *at)
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
	enum err e = plan_check_fit(w, at->parent, &it, at->class);
	if (e == ERR_OK && it.kind == ITEM_PIECE)
		e = plan_grow_pieces(w, 0, it.size);
	if (e == ERR_OK)
		e = plan_insert(w, &it, c->version);
	return e == ERR_OK ? plan_give(&c->now, &it, false) : e;
}

static enum err put_over(struct plan *w, struct change *c, struct item it)
{
	enum err e = plan_check_version(w, c, &it);
	if (e == ERR_OK)
		e = plan_give_old(c, &it);
	if (e == ERR_OK && it.kind == ITEM_PIECE)
		e = plan_grow_pieces(w, it.size, c->body.n);
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
	return e == ERR_OK ? plan_give(&c->now, &it, false) : e;
}

static enum err put(struct plan *w, struct change *c, struct plan_place *at)
{
	if (!plan_found(at))
		return put_new(w, c, at);
	if (rules_put_replaces(c, &at->it))
		return put_over(w, c, at->it);
	return rules_exists(at->it.kind);
}

static enum err leave_file(struct plan *w, struct change *c, const struct item *row)
{
	struct plan_place to = { 0 };
	struct item file = rules_file_left(row, c);
	enum err e = plan_find(w, &c->to, true, c->version, &to);
	if (e == ERR_OK)
		e = plan_stay_inside(w, to.parent);
	if (e == ERR_OK && plan_found(&to))
		e = rules_exists(to.it.kind);
	if (e == ERR_OK)
		e = plan_check_fit(w, to.parent, &file, to.class);
	if (e == ERR_OK && file.size > w->limit_file)
		e = ERR_FILE_TOO_LARGE;
	if (e == ERR_OK)
		e = plan_grow_files(w, 0, file.size);
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
		e = plan_touch(w, file.parent, c->version, 1);
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
	enum err e = plan_check_version(w, c, it);
	if (e == ERR_OK && c->flags & CHANGE_TO_FILE)
		e = leave_file(w, c, it);
	if (e != ERR_OK)
		return e;
	uint64_t files = state_bytes(w->s, ITEM_FILE), pieces = state_bytes(w->s, ITEM_PIECE);
	state_remove_below(w->s, it->id);
	state_remove(w->s, it->id);
	w->file_bytes -= files - state_bytes(w->s, ITEM_FILE);
	w->piece_bytes -= pieces - state_bytes(w->s, ITEM_PIECE);
	e = plan_give(&c->now, it, false);
	if (e == ERR_OK)
		e = plan_give_old(c, it);
	return e == ERR_OK ? plan_child_gone(w, it->parent, c) : e;
}

static enum err set_attrs(struct plan *w, struct change *c, struct item it)
{
	rules_attrs_set(&it, c);
	enum err e = state_replace(w->s, &it, NULL);
	return e == ERR_OK ? plan_give(&c->now, &it, false) : e;
}

static enum err write_file(struct plan *w, struct change *c, struct item it)
{
	uint64_t size;
	enum err e = rules_new_size(c, &it, w->limit_file, &size);
	if (e == ERR_OK)
		e = plan_check_version(w, c, &it);
	if (e == ERR_OK)
		e = plan_give_old(c, &it);
	if (e == ERR_OK)
		e = plan_grow_files(w, it.size, size);
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
	return e == ERR_OK ? plan_give(&c->now, &it, false) : e;
}

static enum err change_it(struct plan *w, struct change *c, struct item *it)
{
	switch (c->op) {
	case CHANGE_DELETE:
		return take_away(w, c, it);
	case CHANGE_MOVE:
		return plan_move(w, c, it);
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
	struct plan_place at = { 0 };
	if (c->op == CHANGE_PUT && c->kind == ITEM_NONE)
		return ERR_INVALID_INPUT;
	enum err e = plan_find(w, &c->at, c->op == CHANGE_PUT, c->version, &at);
	if (e == ERR_OK)
		e = rules_cond(c, plan_found(&at) ? &at.it : NULL);
	bool itself = (c->op == CHANGE_ATTRS || c->op == CHANGE_PUT) && item_is_dir(at.it.kind);
	if (e == ERR_OK)
		e = plan_stay_inside(w, itself ? at.it.id : at.parent);
	if (c->op == CHANGE_PUT)
		c->made_partition = at.made;
	if (e == ERR_OK && c->op == CHANGE_PUT)
		e = put(w, c, &at);
	else if (e == ERR_OK)
		e = plan_found(&at) ? change_it(w, c, &at.it) : ERR_NOT_FOUND;
	item_fini(&at.it);
	return w->failed != ERR_OK ? w->failed : e;
}

enum err plan_end(struct plan *w)
{
	struct node *n = w->emptied ? plan_by_id(w, w->emptied) : NULL;
	if (!n || n->it.size > 0 || n->it.flags & ITEM_MADE) {
		w->emptied = 0;
		return w->failed;
	}
	return plan_remove_empty(w, w->emptied, w->emptied_by);
}
