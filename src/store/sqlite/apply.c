/* SPDX-License-Identifier: MIT
 * Change sets by the rules of store.h, inside a transaction that the caller holds. */
#include "store/rules.h"
#include "store/sqlite/feed.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/writer.h"

#include <string.h>

static unsigned want_of(const struct change *c)
{
	return c->flags & (CHANGE_WANT_OLD | CHANGE_TO_FILE) ? WANT_BODY : WANT_ATTRS;
}

/* The item as it was becomes `old` where that is asked for. */
static enum err give_old(struct change *c, const struct item *it)
{
	return c->flags & CHANGE_WANT_OLD ? item_copy(&c->old, it) : ERR_OK;
}

static enum err give_now(struct change *c, const struct item *it)
{
	struct item plain = *it;
	plain.body = (struct span){ NULL, 0 };
	return item_copy(&c->now, &plain);
}

static enum err put_new(struct sql_writer *w, struct change *c, const struct sql_found *f, bool try)
{
	struct item it = {
		.parent = f->parent,
		.kind = c->kind,
		.class = f->class,
		.flags = c->item_flags & ITEM_FLAGS_PUBLIC,
		.generation = c->kind == ITEM_ROW,
		.version = c->version,
		.born = item_is_dir(c->kind) ? 0 : c->version,
		.attrs = c->attrs,
		.size = rules_body_is_content(c->kind) ? c->body.n : 0,
		.key = f->key,
		.name = c->kind == ITEM_TABLE ? c->name : SPAN_LIT(""),
	};
	struct span body = { NULL, 0 };
	if (rules_has_body(c->kind))
		body = c->body.p ? c->body : SPAN_LIT("");
	enum err e = sql_check_fits(w, f->parent, &it, it.class);
	if (e == ERR_OK && it.kind == ITEM_PIECE)
		e = sql_pieces_grow(w, 0, it.size);
	if (e == ERR_OK)
		e = sql_item_new_id(w, &it.id);
	if (e == ERR_OK && try) {
		e = sql_item_try_insert(w, &it, body);
		if (e == ERR_NAME_EXISTS)
			w->next_id--; /* nobody has seen it */
	} else if (e == ERR_OK) {
		e = sql_item_insert(w, &it, body);
	}
	if (e == ERR_OK)
		e = sql_touch(w, f->parent, c->version, 1);
	if (e == ERR_OK)
		e = sql_feed_put(w, &it);
	return e == ERR_OK ? give_now(c, &it) : e;
}

/* New rows come one after the other, in a set or from set to set: where the last one was new,
 * it is faster to insert without looking first.  *ret_done: it was. */
static enum err put_expected(struct sql_writer *w, struct change *c, bool *ret_done)
{
	struct sql_found f;
	*ret_done = false;
	if (!w->expect_new || c->kind != ITEM_ROW || c->at.id != 0 || !c->at.has_pk ||
		c->at.class != CLASS_KEYED || (c->cond != COND_NONE && c->cond != COND_ABSENT))
		return ERR_OK;
	enum err e = sql_find_parent(w, &c->at, true, c->version, &f);
	if (e == ERR_OK) {
		c->made_partition = f.made;
		e = put_new(w, c, &f, true);
	}
	if (e == ERR_NAME_EXISTS)
		return ERR_OK;
	*ret_done = e == ERR_OK;
	return e;
}

/* Where rules_put_replaces() says so. */
static enum err put_over(struct sql_writer *w, struct change *c, struct sql_found *f)
{
	struct item *it = &f->it;
	enum err e = sql_check_stale(w, c, it);
	if (e == ERR_OK)
		e = give_old(c, it);
	if (e == ERR_OK && item_is_dir(it->kind))
		e = sql_dir_release(w, it->id);
	if (e == ERR_OK && it->kind == ITEM_PIECE)
		e = sql_pieces_grow(w, it->size, c->body.n);
	if (e != ERR_OK)
		return e;
	it->attrs = rules_attrs_replaced(&it->attrs, &c->attrs);
	it->version = c->version;
	if (rules_body_is_content(c->kind)) {
		rules_moved(it, c->kind, true, c->item_flags);
		it->size = c->body.n;
	}
	e = sql_item_update(w, it, c->body.p ? c->body : SPAN_LIT(""));
	if (e == ERR_OK && it->kind == ITEM_ROW)
		e = sql_feed_put(w, it);
	return e == ERR_OK ? give_now(c, it) : e;
}

static enum err apply_put(struct sql_writer *w, struct change *c)
{
	struct sql_found f;
	if (c->kind == ITEM_NONE)
		return ERR_INVALID_INPUT;
	bool done;
	enum err e = put_expected(w, c, &done);
	if (e != ERR_OK || done)
		return e;
	e = sql_find(w, &c->at, want_of(c), true, c->version, &f);
	if (e == ERR_OK)
		e = rules_cond(c, f.present ? &f.it : NULL);
	c->made_partition = f.made;
	w->expect_new = c->kind == ITEM_ROW && !f.present;
	if (e == ERR_OK && !f.present)
		e = put_new(w, c, &f, false);
	else if (e == ERR_OK && rules_put_replaces(c, &f.it))
		e = put_over(w, c, &f);
	else if (e == ERR_OK)
		e = rules_exists(f.it.kind);
	sql_found_fini(&f);
	return e;
}

/* What is there by c->at and c->cond; it must be there. */
static enum err find_present(
	struct sql_writer *w, struct change *c, unsigned want, struct sql_found *f)
{
	enum err e = sql_find(w, &c->at, want, false, 0, f);
	if (e == ERR_OK)
		e = rules_cond(c, f->present ? &f->it : NULL);
	if (e == ERR_OK && !f->present)
		e = ERR_NOT_FOUND;
	return e;
}

/* The row goes, and its document row goes over to the file, if it can. */
static enum err turn_to_file(struct sql_writer *w, const struct item *row, struct item *file)
{
	const struct span none = { NULL, 0 };
	bool small = sql_is_small(file->size), fresh = file->id == 0;
	enum err e =
		file->size > w->limit_file ? ERR_FILE_TOO_LARGE : sql_files_grow(w, 0, file->size);
	file->flags = small ? SQL_IS_INLINE : 0;
	if (e == ERR_OK && fresh) {
		e = sql_item_delete(w, row);
		if (e == ERR_OK)
			e = sql_item_new_id(w, &file->id);
		if (e == ERR_OK)
			e = sql_item_insert(w, file, small ? row->body : none);
	} else if (e == ERR_OK) {
		e = sql_item_move(w, row, file, none);
		if (e == ERR_OK && !small)
			e = sql_item_set_body(w, file->id, none);
	}
	return e == ERR_OK && !small ? sql_content_write(w, file, 0, row->body) : e;
}

static enum err remove_to_file(struct sql_writer *w, struct change *c, const struct item *row)
{
	struct sql_found f;
	struct item file = rules_file_left(row, c);
	enum err e = sql_find(w, &c->to, WANT_ATTRS, true, c->version, &f);
	if (e == ERR_OK && f.present)
		e = rules_exists(f.it.kind);
	if (e == ERR_OK)
		e = sql_check_fits(w, f.parent, &file, f.class);
	if (e == ERR_OK) {
		file.parent = f.parent;
		file.class = f.class;
		file.key = f.key;
		e = turn_to_file(w, row, &file);
	}
	if (e == ERR_OK)
		e = sql_touch(w, f.parent, c->version, 1);
	sql_found_fini(&f);
	return e;
}

static enum err remove_found(struct sql_writer *w, struct change *c, struct item *it)
{
	if (it->id <= STORE_ID_FIRST)
		return ERR_NOT_PERMITTED;
	if (item_is_dir(it->kind) && it->size > 0 && !(c->flags & CHANGE_RECURSIVE))
		return ERR_NOT_EMPTY;
	if (c->flags & CHANGE_TO_FILE && it->kind != ITEM_ROW)
		return ERR_INVALID_INPUT;
	enum err e = sql_check_stale(w, c, it);
	if (e == ERR_OK)
		e = sql_feed_gone(w, it);
	if (e == ERR_OK)
		e = c->flags & CHANGE_TO_FILE ? remove_to_file(w, c, it) : sql_remove(w, it);
	if (e == ERR_OK)
		e = give_now(c, it);
	if (e == ERR_OK)
		e = give_old(c, it);
	return e == ERR_OK ? sql_child_gone(w, it->parent, c) : e;
}

static enum err apply_delete(struct sql_writer *w, struct change *c)
{
	struct sql_found f;
	enum err e = find_present(w, c, want_of(c), &f);
	if (e == ERR_OK)
		e = remove_found(w, c, &f.it);
	sql_found_fini(&f);
	return e;
}

static enum err apply_attrs(struct sql_writer *w, struct change *c)
{
	struct sql_found f;
	enum err e = find_present(w, c, WANT_ATTRS, &f);
	if (e == ERR_OK && item_is_dir(f.it.kind))
		e = sql_dir_release(w, f.it.id);
	if (e == ERR_OK) {
		rules_attrs_set(&f.it, c);
		e = sql_item_update(w, &f.it, (struct span){ NULL, 0 });
	}
	if (e == ERR_OK)
		e = give_now(c, &f.it);
	sql_found_fini(&f);
	return e;
}

static enum err write_found(struct sql_writer *w, struct change *c, struct item *it)
{
	uint64_t size;
	enum err e = rules_new_size(c, it, w->limit_file, &size);
	if (e == ERR_OK)
		e = sql_check_stale(w, c, it);
	if (e == ERR_OK)
		e = give_old(c, it);
	if (e == ERR_OK)
		e = sql_files_grow(w, it->size, size);
	if (e == ERR_OK && c->op == CHANGE_WRITE)
		e = sql_content_write(w, it, c->offset, c->body);
	else if (e == ERR_OK && size < it->size)
		e = sql_content_cut(w, it, size);
	if (e != ERR_OK)
		return e;
	it->size = size;
	it->version = c->version;
	it->attrs.mtime_ns = it->attrs.ctime_ns = TIME_UNSET;
	e = sql_item_update(w, it, (struct span){ NULL, 0 });
	return e == ERR_OK ? give_now(c, it) : e;
}

static enum err apply_write(struct sql_writer *w, struct change *c)
{
	struct sql_found f;
	enum err e = find_present(w, c, WANT_ATTRS, &f);
	if (e == ERR_OK)
		e = write_found(w, c, &f.it);
	sql_found_fini(&f);
	return e;
}

static enum err apply_one(struct sql_writer *w, struct change *c)
{
	switch (c->op) {
	case CHANGE_PUT:
		return apply_put(w, c);
	case CHANGE_DELETE:
		return apply_delete(w, c);
	case CHANGE_MOVE:
		return sql_apply_move(w, c);
	case CHANGE_ATTRS:
		return apply_attrs(w, c);
	case CHANGE_WRITE:
	case CHANGE_RESIZE:
		return apply_write(w, c);
	}
	return ERR_INVALID_INPUT;
}

/* Reserves versions a second ahead: the file learns of it once a second under load. */
static enum err reserve_versions(struct sql_writer *w, const struct change *changes, size_t n)
{
	int64_t high = 0;
	for (size_t i = 0; i < n; i++) {
		if (changes[i].op != CHANGE_ATTRS && changes[i].version > high)
			high = changes[i].version;
	}
	if (high <= w->now.version_reserved)
		return ERR_OK;
	int64_t up_to = high > INT64_MAX - 10000000 ? INT64_MAX : high + 10000000;
	enum err e = sql_meta_put(w->conn, "version_high", up_to);
	if (e == ERR_OK)
		w->now.version_reserved = up_to;
	return e;
}

static enum err upgrade_schema(struct sql_writer *w)
{
	if (w->now.schema >= SQL_SCHEMA_UNSEALED)
		return ERR_OK;
	enum err e = sql_schema_upgrade(w->conn, &w->now.schema);
	w->now.file_bytes_saved = w->now.piece_bytes_saved = UINT64_MAX;
	return e;
}

enum err sql_finish(struct sql_writer *w)
{
	struct sql_dir *trash;
	enum err e = ERR_OK;
	if (w->now.file_bytes != w->now.file_bytes_saved ||
		w->now.piece_bytes != w->now.piece_bytes_saved) {
		e = sql_dir_get(w, STORE_TRASH, &trash);
		if (e == ERR_OK)
			trash->dirty = true; /* it has the sums */
	}
	return e == ERR_OK ? sql_dirs_flush(w) : e;
}

enum err sql_apply_set(struct sql_writer *w, struct change *changes, size_t n, size_t *ret_op)
{
	enum err e = upgrade_schema(w);
	if (e == ERR_OK)
		e = reserve_versions(w, changes, n);
	w->set = changes;
	*ret_op = 0;
	for (w->at = 0; e == ERR_OK && w->at < n; w->at++) {
		*ret_op = w->at;
		e = apply_one(w, &changes[w->at]);
	}
	/* What only the engine may see stays inside. */
	for (size_t i = 0; e == ERR_OK && i < n; i++) {
		changes[i].now.flags &= ITEM_FLAGS_PUBLIC;
		changes[i].old.flags &= ITEM_FLAGS_PUBLIC;
	}
	return e == ERR_OK ? sql_finish(w) : e;
}
