/* SPDX-License-Identifier: MIT
 * CHANGE_MOVE: rename(2) in all its forms, with the conversions between rows and files.
 * The surprising one is the exchange, for which both items leave their places before
 * either takes its new one. */
#include "store/rules.h"
#include "store/sqlite/feed.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/writer.h"

/* One of the two items of a move: as it was, as it becomes. */
struct mover {
	struct item *was;
	struct item will; /* borrows key and name */
	struct span body; /* its document; p is NULL: the one it has */
	uint32_t flags;   /* of that document */
	enum item_kind kind;
};

/* Whether `id` is `dir` or above it. */
static enum err check_not_inside(struct sql_writer *w, uint64_t id, uint64_t dir)
{
	while (dir != 0) {
		struct sql_dir *d;
		if (dir == id)
			return ERR_INVALID_INPUT;
		enum err e = sql_dir_get(w, dir, &d);
		if (e != ERR_OK)
			return e;
		dir = d->it.parent;
	}
	return ERR_OK;
}

static enum err check_mover(struct sql_writer *w, const struct change *c, const struct mover *m,
	const struct sql_found *to)
{
	if (m->was->id <= STORE_ID_FIRST)
		return ERR_NOT_PERMITTED;
	const struct item will = {
		.kind = m->kind != ITEM_NONE ? m->kind : m->was->kind,
		.size = m->body.p ? m->body.n : m->was->size,
	};
	enum err e = rules_convert(m->was->kind, m->kind, m->body.p != NULL);
	if (e == ERR_OK)
		e = sql_check_fits(w, to->parent, &will, to->class);
	if (e == ERR_OK && item_is_dir(will.kind))
		e = check_not_inside(w, m->was->id, to->parent);
	return e == ERR_OK ? sql_check_stale(w, c, m->was) : e;
}

/* A small one keeps its document row. */
static enum err row_to_file(struct sql_writer *w, struct mover *m)
{
	uint64_t size = m->will.size;
	enum err e = size > w->limit_file ? ERR_FILE_TOO_LARGE : sql_files_grow(w, 0, size);
	if (e != ERR_OK)
		return e;
	if (sql_is_small(size)) {
		m->will.flags |= SQL_IS_INLINE;
		return ERR_OK;
	}
	struct item full = { 0 };
	if (!m->body.p)
		e = sql_get(w->conn, m->was->id, WANT_BODY, &full);
	if (e == ERR_OK)
		e = sql_content_write(w, &m->will, 0, m->body.p ? m->body : full.body);
	if (e == ERR_OK)
		e = sql_item_set_body(w, m->was->id, (struct span){ NULL, 0 });
	m->body = (struct span){ NULL, 0 };
	item_fini(&full);
	return e;
}

/* The content of an item that becomes a file, ceases to be one, or is a piece with new bytes. */
static enum err convert_content(struct sql_writer *w, struct mover *m)
{
	if (m->was->kind == ITEM_FILE && m->will.kind == ITEM_ROW)
		return sql_content_drop(w, m->was);
	if (m->was->kind == ITEM_ROW && m->will.kind == ITEM_FILE)
		return row_to_file(w, m);
	return m->was->kind == ITEM_PIECE ? sql_pieces_grow(w, m->was->size, m->will.size) : ERR_OK;
}

/* What the item becomes, at its new place. */
static void transform(const struct change *c, struct mover *m, uint64_t parent,
	enum item_class class, struct span key)
{
	m->will = *m->was;
	m->will.attrs = rules_attrs_moved(m->was);
	m->will.version = c->version;
	rules_moved(&m->will, m->kind, m->body.p != NULL, m->flags);
	if (m->body.p)
		m->will.size = m->body.n;
	m->will.parent = parent;
	m->will.class = class;
	m->will.key = key;
	m->will.body = (struct span){ NULL, 0 };
}

static enum err give_results(struct change *c, const struct item *now, const struct item *old)
{
	enum err e = item_copy(&c->now, now);
	if (e == ERR_OK && old && c->flags & CHANGE_WANT_OLD)
		e = item_copy(&c->old, old);
	return e;
}

/* Onto itself: nothing, or a conversion or another case of the name in place. */
static enum err move_in_place(struct sql_writer *w, struct change *c, struct mover *m)
{
	bool renamed = m->was->kind == ITEM_TABLE && c->name.n && !span_eq(c->name, m->was->name);
	bool same = (m->kind == ITEM_NONE || m->kind == m->was->kind) && !m->body.p && !renamed;
	if (same && c->flags & CHANGE_NO_REPLACE)
		return rules_exists(m->was->kind);
	m->will = *m->was;
	m->will.body = (struct span){ NULL, 0 };
	if (same)
		return give_results(c, &m->will, NULL);
	struct sql_found self = { .parent = m->was->parent, .class = m->was->class };
	enum err e = check_mover(w, c, m, &self);
	if (e == ERR_OK && item_is_dir(m->was->kind))
		e = sql_dir_release(w, m->was->id);
	if (e != ERR_OK)
		return e;
	transform(c, m, m->was->parent, m->was->class, m->was->key);
	if (renamed)
		m->will.name = c->name;
	e = convert_content(w, m);
	if (e == ERR_OK)
		e = sql_item_update(w, &m->will, m->body);
	if (e == ERR_OK && m->body.p)
		e = sql_feed_put(w, &m->will);
	if (e == ERR_OK)
		e = sql_touch(w, m->was->parent, c->version, 0);
	return e == ERR_OK ? give_results(c, &m->will, m->was) : e;
}

/* What stands at the target, against rename(2)'s rules.  It is none of the fixed items: those stand
 * in no directory, which check_mover() refuses. */
static enum err check_replaced(struct sql_writer *w, const struct change *c, const struct mover *m,
	const struct item *there)
{
	if (c->flags & CHANGE_NO_REPLACE)
		return rules_exists(there->kind);
	bool dir = item_is_dir(m->was->kind), over = item_is_dir(there->kind);
	if (over && !dir)
		return ERR_IS_A_DIRECTORY;
	if (dir && !over)
		return ERR_NOT_A_DIRECTORY;
	if (over && there->size > 0)
		return ERR_NOT_EMPTY;
	return sql_check_stale(w, c, there);
}

static enum err move_over(
	struct sql_writer *w, struct change *c, struct mover *m, struct sql_found *to)
{
	const struct item *there = to->present ? &to->it : NULL;
	enum err e = check_mover(w, c, m, to);
	if (e == ERR_OK && there)
		e = check_replaced(w, c, m, there);
	if (e == ERR_OK && there)
		e = sql_remove(w, there);
	if (e == ERR_OK && item_is_dir(m->was->kind))
		e = sql_dir_release(w, m->was->id);
	if (e != ERR_OK)
		return e;
	transform(c, m, to->parent, to->class, to->key);
	if (m->was->kind == ITEM_TABLE && c->name.n)
		m->will.name = c->name;
	e = convert_content(w, m);
	if (e == ERR_OK)
		e = sql_item_move(w, m->was, &m->will, m->body);
	if (e == ERR_OK)
		e = sql_touch(w, to->parent, c->version, there ? 0 : 1);
	if (e == ERR_OK)
		e = sql_feed_moved(w, m->was, &m->will);
	if (e == ERR_OK)
		e = sql_child_gone(w, m->was->parent, c);
	return e == ERR_OK ? give_results(c, &m->will, there) : e;
}

static enum err exchange_places(struct sql_writer *w, struct mover *m, struct mover *other)
{
	/* sql_item_move() takes the second one from the place that the first one now has, so
	 * the second leaves first. */
	struct item aside = *other->was;
	static const char hole[] = "\0exchange"; /* no key holds a NUL */
	aside.key = span_make(hole, sizeof(hole) - 1);
	enum err e = sql_item_move(w, other->was, &aside, (struct span){ NULL, 0 });
	if (e == ERR_OK)
		e = sql_item_move(w, m->was, &m->will, m->body);
	return e == ERR_OK ? sql_item_move(w, &aside, &other->will, other->body) : e;
}

/* Both go before either comes: each stands where the other one was. */
static enum err tell_exchange(
	struct sql_writer *w, const struct mover *m, const struct mover *other)
{
	enum err e = sql_feed_gone(w, m->was);
	if (e == ERR_OK)
		e = sql_feed_gone(w, other->was);
	if (e == ERR_OK)
		e = sql_feed_put(w, &m->will);
	return e == ERR_OK ? sql_feed_put(w, &other->will) : e;
}

static enum err exchange(
	struct sql_writer *w, struct change *c, struct mover *m, struct sql_found *to)
{
	if (!to->present)
		return ERR_NOT_FOUND;
	struct mover other = {
		.was = &to->it,
		.body = c->other_body,
		.flags = c->other_flags,
		.kind = c->other_kind,
	};
	struct sql_found back = { .parent = m->was->parent, .class = m->was->class };
	enum err e = check_mover(w, c, m, to);
	if (e == ERR_OK)
		e = check_mover(w, c, &other, &back);
	if (e == ERR_OK && item_is_dir(m->was->kind))
		e = sql_dir_release(w, m->was->id);
	if (e == ERR_OK && item_is_dir(other.was->kind))
		e = sql_dir_release(w, other.was->id);
	if (e != ERR_OK)
		return e;
	transform(c, m, to->parent, to->class, to->key);
	transform(c, &other, m->was->parent, m->was->class, m->was->key);
	if (m->was->kind == ITEM_TABLE && c->name.n)
		m->will.name = c->name;
	e = convert_content(w, m);
	if (e == ERR_OK)
		e = convert_content(w, &other);
	if (e == ERR_OK)
		e = exchange_places(w, m, &other);
	if (e == ERR_OK)
		e = sql_touch(w, to->parent, c->version, 0);
	if (e == ERR_OK)
		e = sql_touch(w, m->was->parent, c->version, 0);
	if (e == ERR_OK)
		e = tell_exchange(w, m, &other);
	return e == ERR_OK ? give_results(c, &m->will, other.was) : e;
}

enum err sql_apply_move(struct sql_writer *w, struct change *c)
{
	unsigned want = c->flags & CHANGE_WANT_OLD ? WANT_BODY : WANT_ATTRS;
	struct sql_found from, to = { 0 };
	enum err e = sql_find(w, &c->at, want, false, 0, &from);
	if (e == ERR_OK)
		e = rules_cond(c, from.present ? &from.it : NULL);
	if (e == ERR_OK && !from.present)
		e = ERR_NOT_FOUND;
	if (e == ERR_OK)
		e = sql_find(w, &c->to, want, true, c->version, &to);
	c->made_partition = to.made;
	if (e == ERR_OK)
		e = rules_to_match(c, to.present ? &to.it : NULL);
	if (e == ERR_OK) {
		struct mover m = {
			.was = &from.it,
			.body = c->body,
			.flags = c->item_flags,
			.kind = c->to_kind,
		};
		if (to.present && to.it.id == from.it.id)
			e = move_in_place(w, c, &m);
		else if (c->flags & CHANGE_EXCHANGE)
			e = exchange(w, c, &m, &to);
		else
			e = move_over(w, c, &m, &to);
	}
	sql_found_fini(&from);
	sql_found_fini(&to);
	return e;
}
