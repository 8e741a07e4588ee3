/* SPDX-License-Identifier: MIT
 * A tree at one moment, as an array.  Slow and obvious on purpose. */
#include "store/state.h"

#include <stdlib.h>
#include <string.h>

static void node_unref(struct node *n)
{
	if (atomic_fetch_sub(&n->refs, 1) != 1)
		return;
	item_fini(&n->it);
	free(n->data);
	free(n);
}

enum err state_copy(const struct state *from, struct state **ret)
{
	struct state *s = calloc(1, sizeof(*s));
	if (!s)
		return ERR_NO_MEMORY;
	s->refs = 1;
	s->cap = (from ? from->n : 0) + 16;
	s->v = calloc(s->cap, sizeof(struct node *));
	if (!s->v) {
		free(s);
		return ERR_NO_MEMORY;
	}
	for (size_t i = 0; from && i < from->n; i++) {
		s->v[s->n++] = from->v[i];
		atomic_fetch_add(&from->v[i]->refs, 1);
	}
	*ret = s;
	return ERR_OK;
}

struct state *state_ref(struct state *s)
{
	atomic_fetch_add(&s->refs, 1);
	return s;
}

void state_unref(struct state *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	for (size_t i = 0; i < s->n; i++)
		node_unref(s->v[i]);
	free(s->v);
	free(s);
}

static int cmp_place(const struct item *it, uint64_t parent, enum item_class class, struct span key)
{
	if (it->parent != parent)
		return it->parent < parent ? -1 : 1;
	if (it->class != class)
		return it->class < class ? -1 : 1;
	return span_cmp(it->key, key);
}

size_t state_seek(const struct state *s, uint64_t parent, enum item_class class, struct span key)
{
	size_t low = 0, high = s->n;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (cmp_place(&s->v[mid]->it, parent, class, key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct node *state_child(
	const struct state *s, uint64_t parent, enum item_class class, struct span key)
{
	size_t i = state_seek(s, parent, class, key);
	if (i == s->n || cmp_place(&s->v[i]->it, parent, class, key) != 0)
		return NULL;
	return s->v[i];
}

struct node *state_by_id(const struct state *s, uint64_t id)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i]->it.id == id)
			return s->v[i];
	}
	return NULL;
}

uint64_t state_bytes(const struct state *s, enum item_kind kind)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < s->n; i++)
		sum += s->v[i]->it.kind == kind ? s->v[i]->it.size : 0;
	return sum;
}

static enum err make_room(struct state *s)
{
	if (s->n < s->cap)
		return ERR_OK;
	struct node **v = reallocarray(s->v, s->cap * 2, sizeof(struct node *));
	if (!v)
		return ERR_NO_MEMORY;
	s->v = v;
	s->cap *= 2;
	return ERR_OK;
}

static void place(struct state *s, struct node *n)
{
	size_t i = state_seek(s, n->it.parent, n->it.class, n->it.key);
	memmove(&s->v[i + 1], &s->v[i], (s->n - i) * sizeof(struct node *));
	s->v[i] = n;
	s->n++;
}

enum err state_insert(struct state *s, const struct item *it, char *data)
{
	struct node *n = calloc(1, sizeof(*n));
	enum err e = n ? make_room(s) : ERR_NO_MEMORY;
	if (e == ERR_OK)
		e = item_copy(&n->it, it);
	if (e != ERR_OK) {
		free(n);
		free(data);
		return e;
	}
	n->refs = 1;
	n->data = data;
	place(s, n);
	return ERR_OK;
}

enum err state_share(struct state *s, struct node *n)
{
	enum err e = make_room(s);
	if (e != ERR_OK)
		return e;
	atomic_fetch_add(&n->refs, 1);
	place(s, n);
	return ERR_OK;
}

static void remove_at(struct state *s, size_t i)
{
	node_unref(s->v[i]);
	s->n--;
	memmove(&s->v[i], &s->v[i + 1], (s->n - i) * sizeof(struct node *));
}

void state_remove(struct state *s, uint64_t id)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i]->it.id == id) {
			remove_at(s, i);
			return;
		}
	}
}

static bool is_below(const struct state *s, const struct item *it, uint64_t id)
{
	while (it->parent != id) {
		struct node *up = state_by_id(s, it->parent);
		if (!up)
			return false;
		it = &up->it;
	}
	return true;
}

void state_remove_below(struct state *s, uint64_t id)
{
	/* Marked first: what is looked up on the way must be there until the end. */
	bool *below = calloc(s->n + 1, sizeof(*below));
	if (!below)
		abort();
	for (size_t i = 0; i < s->n; i++)
		below[i] = is_below(s, &s->v[i]->it, id);
	for (size_t i = s->n; i-- > 0;) {
		if (below[i])
			remove_at(s, i);
	}
	free(below);
}

enum err state_replace(struct state *s, const struct item *it, char *data)
{
	struct node *old = state_by_id(s, it->id);
	if (!data && it->kind == ITEM_FILE && old->data && it->size > 0) {
		data = malloc(it->size);
		if (!data)
			return ERR_NO_MEMORY;
		memcpy(data, old->data, it->size);
	}
	/* *it may borrow from the old node. */
	atomic_fetch_add(&old->refs, 1);
	state_remove(s, it->id);
	enum err e = state_insert(s, it, data);
	node_unref(old);
	return e;
}
