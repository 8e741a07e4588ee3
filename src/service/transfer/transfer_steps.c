/* SPDX-License-Identifier: MIT
 * A page of leaves (rows, messages, pieces) is one change set.  Everything else goes one by one: a
 * directory before what is in it, since that needs its new id. */
#include "service/transfer/transfer_steps.h"

#include <stdlib.h>

#define PAGE_ITEMS 1000
#define PAGE_BYTES ((size_t)1 << 20)

struct page {
	struct item items[PAGE_ITEMS];
	struct change changes[PAGE_ITEMS];
	size_t n, bytes;
	bool more;
	enum err error;
};

static bool take(void *arg, const struct item *it)
{
	struct page *p = arg;
	p->more = p->n == PAGE_ITEMS || p->bytes >= PAGE_BYTES;
	if (p->more)
		return false;
	p->error = item_copy(&p->items[p->n], it);
	if (p->error != ERR_OK)
		return false;
	p->bytes += it->body.n;
	p->n++;
	return true;
}

static void drop_items(struct page *p)
{
	for (size_t i = 0; i < p->n; i++)
		item_fini(&p->items[i]);
	p->n = p->bytes = 0;
}

static bool is_leaf(const struct item *it)
{
	return it->kind == ITEM_ROW || it->kind == ITEM_MESSAGE || it->kind == ITEM_PIECE;
}

struct change transfer_put(const struct item *it, uint64_t parent)
{
	return (struct change){ .op = CHANGE_PUT,
		.at = { .parent = parent, .class = it->class, .key = it->key },
		.cond = COND_ABSENT,
		.version = it->version,
		.kind = it->kind,
		.name = it->name,
		.item_flags = it->flags,
		.body = it->body,
		.attrs = it->attrs };
}

/* Makes room for the id of an item in a fixed directory.  Such items are made one by one. */
static bool keep_room(struct transfer *t)
{
	if (t->ntops < t->cap_tops)
		return true;
	size_t cap = t->cap_tops > 0 ? 2 * t->cap_tops : 16;
	uint64_t *v = reallocarray(t->tops, cap, sizeof(*v));
	if (v == NULL)
		return false;
	t->tops = v;
	t->cap_tops = cap;
	return true;
}

enum err transfer_apply(struct transfer *t, struct change *c, size_t n, uint64_t *ret_id)
{
	bool top = c->op == CHANGE_PUT && c->at.id == 0 && c->at.parent < STORE_ID_FIRST;
	if (top && !keep_room(t))
		return ERR_NO_MEMORY;
	enum err e = store_apply(t->to, c, n, false, t->detail);
	if (e != ERR_OK)
		return e;
	if (top)
		t->tops[t->ntops++] = c->now.id;
	if (ret_id != NULL)
		*ret_id = c->now.id;
	for (size_t i = 0; i < n; i++) {
		t->counts->items += c[i].kind != ITEM_PIECE && c[i].op == CHANGE_PUT;
		t->counts->bytes += c[i].body.n;
	}
	changes_fini(c, n);
	return t->fn(t->arg, t->counts) ? ERR_OK : ERR_CANCELLED;
}

static enum err put_leaves(struct transfer *t, struct page *p, uint64_t parent)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n; i++)
		if (is_leaf(&p->items[i]))
			p->changes[n++] = transfer_put(&p->items[i], parent);
	return n > 0 ? transfer_apply(t, p->changes, n, NULL) : ERR_OK;
}

enum err transfer_dir(struct transfer *t, const struct item *dir, uint64_t parent, uint64_t *ret_id)
{
	struct change c = transfer_put(dir, parent);
	return transfer_apply(t, &c, 1, ret_id);
}

static enum err copy_page(struct transfer *t, struct page *p, uint64_t to)
{
	enum err e = put_leaves(t, p, to);
	for (size_t i = 0; i < p->n && e == ERR_OK; i++)
		if (!is_leaf(&p->items[i]))
			e = t->other(t, &p->items[i], to);
	return e;
}

/* A directory that was removed meanwhile is empty. */
static enum err list_page(
	struct transfer *t, uint64_t from, enum item_class class, struct span after, struct page *p)
{
	p->more = false;
	enum err e = store_list(t->from, t->view, from, class, after, false, WANT_BODY, take, p);
	if (e == ERR_NOT_FOUND)
		return ERR_OK;
	return e == ERR_OK ? p->error : e;
}

/* Not NULL, also for an empty key. */
static enum err note_key(struct buf *after, struct span key)
{
	buf_clear(after);
	if (!buf_reserve(after, key.n + 1))
		return ERR_NO_MEMORY;
	buf_add_span(after, key);
	return buf_full(after);
}

enum err transfer_class(struct transfer *t, uint64_t from, uint64_t to, enum item_class class)
{
	struct buf after = BUF_INIT(SIZE_MAX / 2);
	struct page *p = calloc(1, sizeof(*p));
	enum err e = p != NULL ? ERR_OK : ERR_NO_MEMORY;
	do {
		if (e == ERR_OK)
			e = list_page(t, from, class, buf_span(&after), p);
		if (e == ERR_OK && p->n > 0)
			e = note_key(&after, p->items[p->n - 1].key);
		if (e == ERR_OK)
			e = copy_page(t, p, to);
		if (p != NULL)
			drop_items(p);
	} while (e == ERR_OK && p->more);
	buf_fini(&after);
	free(p);
	return e;
}
