/* SPDX-License-Identifier: MIT
 * Change sets.  plan.c works one out on those items that it names; this file loads them, and
 * commit.c writes the difference.  A set that another one crossed is worked out again. */
#include "store/rados/work.h"

#include <stdlib.h>
#include <string.h>

/* ---- loading ---- */

static enum err note_seal(struct work *w, const struct found *f)
{
	for (size_t i = 0; i < w->nseals; i++) {
		if (w->seals[i].dir == f->dir)
			return strcmp(w->seals[i].token, f->seal) == 0 ? ERR_OK : ERR_BUSY;
	}
	enum err e = rstore_grow(&w->seals, w->nseals, &w->cap_seals, sizeof(*w->seals));
	if (e == ERR_OK) {
		struct seal *x = &w->seals[w->nseals++];
		x->dir = f->dir;
		memcpy(x->token, f->seal, sizeof(x->token));
		memcpy(x->last, f->last, sizeof(x->last));
		x->above = f->above;
		rstore_saw(w->s, f->above);
	}
	return e;
}

static enum err note_big(struct work *w, const struct found *f)
{
	if (!*f->r.token)
		return ERR_OK;
	enum err e = rstore_grow(&w->bigs, w->nbigs, &w->cap_bigs, sizeof(*w->bigs));
	if (e == ERR_OK) {
		struct big *b = &w->bigs[w->nbigs++];
		b->id = f->r.it.id;
		memcpy(b->token, f->r.token, sizeof(b->token));
	}
	return e;
}

static enum err take_in(struct work *w, struct found *f)
{
	enum err e = note_seal(w, f);
	rstore_saw(w->s, f->r.it.version);
	if (state_by_id(w->base, f->r.it.id))
		return e; /* and it may have been changed, or removed, by this set */
	if (e == ERR_OK)
		e = note_big(w, f);
	if (e == ERR_OK)
		e = find_body(w->s, f);
	if (e == ERR_OK)
		e = state_insert(w->base, &f->r.it, NULL);
	if (e == ERR_OK)
		e = state_share(w->plan.s, state_by_id(w->base, f->r.it.id));
	return e == ERR_NOT_FOUND ? ERR_BUSY : e;
}

static enum err load_id(struct plan *p, uint64_t id)
{
	struct work *w = (struct work *)p;
	struct found f;
	if (state_by_id(w->base, id))
		return ERR_OK;
	enum err e = find_id(w->s, id, &f);
	if (e == ERR_OK)
		e = take_in(w, &f);
	else if (e == ERR_NOT_FOUND)
		e = ERR_OK;
	found_fini(&f);
	return e;
}

static int by_key(const void *a, const void *b)
{
	return span_cmp(((const struct rio_value *)a)->key, ((const struct rio_value *)b)->key);
}

static bool was_looked_for(
	const struct work *w, uint64_t parent, enum item_class class, struct span key)
{
	const struct children *c = &w->looked;
	size_t from = 0, to = c->parent == parent && c->class == class ? c->n : 0;
	while (from < to) {
		size_t mid = from + (to - from) / 2;
		struct span at = c->v[mid].key;
		int order = span_cmp(span_make(at.p + 1, at.n - 1), key);
		if (order == 0)
			return true;
		if (order < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return false;
}

static enum err load_child(struct plan *p, uint64_t parent, enum item_class class, struct span key)
{
	struct work *w = (struct work *)p;
	struct found f;
	if (state_child(w->base, parent, class, key) || was_looked_for(w, parent, class, key))
		return ERR_OK;
	enum err e = find_child(w->s, parent, class, key, &f);
	if (e == ERR_OK)
		e = take_in(w, &f);
	else if (e == ERR_NOT_FOUND)
		e = ERR_OK;
	found_fini(&f);
	return e;
}

static enum err take_in_found(void *arg, struct found *f)
{
	return take_in(arg, f);
}

static bool same_place(const struct item_ref *a, const struct item_ref *b)
{
	return a->id == 0 && b->id == 0 && a->has_pk && b->has_pk && a->parent == b->parent &&
		a->class == b->class && span_eq(a->pk, b->pk);
}

/* The keys of all changes in the partition of the first one, sorted. */
static enum err children_of(struct children *c, const struct change *changes, size_t n)
{
	const struct item_ref *first = &changes[0].at;
	size_t bytes = 0;
	c->class = first->class;
	for (size_t i = 0; i < n; i++)
		if (same_place(&changes[i].at, first))
			bytes += 1 + changes[i].at.key.n;
	c->keys = BUF_INIT(bytes + 1);
	c->v = calloc(n + FIND_SEALS, sizeof(*c->v));
	if (!c->v || !buf_reserve(&c->keys, bytes + 1)) /* so that keys keep their place */
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < n; i++) {
		if (!same_place(&changes[i].at, first))
			continue;
		size_t from = c->keys.len;
		key_place(&c->keys, first->class, changes[i].at.key);
		c->v[c->n++].key = span_make(c->keys.data + from, c->keys.len - from);
	}
	qsort(c->v, c->n, sizeof(*c->v), by_key);
	return ERR_OK;
}

/* Loads what a large set names in one partition by one read, instead of one for each row. */
static enum err load_children(struct work *w, const struct change *changes, size_t n)
{
	const struct item_ref *at = &changes[0].at;
	struct children *c = &w->looked;
	if (n < 2 || !same_place(at, at))
		return ERR_OK;
	enum err e = load_id(&w->plan, at->parent);
	if (e == ERR_OK)
		e = load_child(&w->plan, at->parent, CLASS_KEYED, at->pk);
	const struct node *dir = state_child(w->base, at->parent, CLASS_KEYED, at->pk);
	if (e != ERR_OK || !dir || dir->it.kind != ITEM_PARTITION)
		return e;
	e = children_of(c, changes, n);
	if (e == ERR_OK)
		e = find_children(w->s, dir->it.id, c->class, c->v, c->n, take_in_found, w);
	if (e == ERR_OK)
		c->parent = dir->it.id;
	return e == ERR_NOT_FOUND ? ERR_BUSY : e;
}

static enum err take_id(struct plan *p, const struct item *it, uint64_t *ret)
{
	struct work *w = (struct work *)p;
	return ids_take(w->s, item_is_dir(it->kind) ? 0 : it->parent, ret);
}

static enum err content(struct plan *p, const struct item *was, uint64_t id, uint64_t size,
	uint64_t offset, struct span bytes, char **ret_data)
{
	struct work *w = (struct work *)p;
	*ret_data = NULL;
	return stripes_write(w->s, &w->stripes, was ? was->parent : 0, id, !was,
		was ? was->size : 0, size, offset, bytes);
}

static const struct plan_ops ops = { load_id, load_child, take_id, content };

/* ---- a change set ---- */

static void work_fini(struct work *w)
{
	for (size_t i = 0; i < w->nedits; i++)
		rio_edit_fini(&w->edits[i].edit);
	item_fini(&w->plan.unit);
	stripes_fini(&w->stripes);
	state_unref(w->base);
	state_unref(w->plan.s);
	buf_fini(&w->looked.keys);
	free(w->looked.v);
	free(w->edits);
	free(w->seals);
	free(w->bigs);
	free(w->made.v);
	free(w->litter.v);
	free(w->left);
}

static enum err try_set(struct work *w, struct change *changes, size_t n, size_t *ret_blame)
{
	struct plan *p = &w->plan;
	mutex_lock(&w->s->lock);
	p->file_bytes = w->s->file_bytes;
	mutex_unlock(&w->s->lock);
	w->files_before = p->file_bytes;
	p->empties_late = true;
	p->ops = &ops;
	p->limit_file = w->s->limit_file;
	p->limit_files = w->s->limit_files;
	p->limit_pieces = UINT64_MAX;
	p->set = changes;
	enum err e = state_copy(NULL, &w->base);
	if (e == ERR_OK)
		e = state_copy(NULL, &p->s);
	if (e == ERR_OK)
		e = load_children(w, changes, n);
	for (p->at = 0; e == ERR_OK && p->at < n; p->at++) {
		e = plan_change(p, &changes[p->at]);
		*ret_blame = p->at;
	}
	if (e == ERR_OK)
		e = plan_end(p);
	return e == ERR_OK ? work_commit(w, n) : e;
}

/* Sets of one directory get the same lock, as a rule. */
static unsigned writer_of(struct rstore *s, const struct item_ref *at)
{
	uint64_t h = at->parent, home;
	if (at->id)
		h = ids_home(s, at->id, &home) == ERR_OK && home ? home : at->id;
	for (size_t i = 0; !at->id && at->has_pk && i < at->pk.n; i++)
		h = (h ^ (unsigned char)at->pk.p[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
	return (unsigned)((h ^ h >> 32) % WRITERS);
}

enum err rados_apply(
	struct store *st, struct change *changes, size_t n, bool durable, struct err_detail *reterr)
{
	struct rstore *s = rstore_of(st);
	size_t blame = 0;
	(void)durable; /* what the cluster acknowledged is on disk */
	if (n == 0)
		return ERR_OK;
	if (s->read_only)
		return err_set(reterr, ERR_READ_ONLY, NULL);
	enum err e = ERR_BUSY;
	unsigned writer = writer_of(s, &changes[0].at);
	for (unsigned i = 0; i < RSTORE_TRIES && e == ERR_BUSY; i++) {
		struct work w = { .s = s, .writer = writer };
		rstore_pause(i);
		rwlock_rdlock(&s->sets);
		mutex_lock(&s->writers[writer]);
		e = try_set(&w, changes, n, &blame);
		mutex_unlock(&s->writers[writer]);
		rwlock_unlock(&s->sets);
		if (e == ERR_OK)
			work_clean_up(&w);
		else
			changes_fini(changes, n);
		work_fini(&w);
	}
	if (e != ERR_OK && reterr) {
		memset(reterr, 0, sizeof(*reterr));
		reterr->op = blame;
	}
	return e == ERR_BUSY ? ERR_THROTTLED : e;
}
