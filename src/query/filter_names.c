/* SPDX-License-Identifier: MIT
 * Maps names to slots: once for a filter, and once for each row. */
#include "query/filter_names.h"

#include "codec/document_walk.h"

unsigned filter_name_fixed(struct span name)
{
	if (span_is(name, "PartitionKey"))
		return FILTER_SLOT_PK;
	if (span_is(name, "RowKey"))
		return FILTER_SLOT_RK;
	return span_is(name, "Timestamp") ? FILTER_SLOT_TIMESTAMP : FILTER_SLOT_NAMED;
}

static int order(struct span a, struct span b)
{
	if (a.n != b.n)
		return a.n < b.n ? -1 : 1;
	if (a.n > 0 && a.p[a.n - 1] != b.p[b.n - 1])
		return a.p[a.n - 1] < b.p[b.n - 1] ? -1 : 1;
	return a.n == 0 ? 0 : memcmp(a.p, b.p, a.n);
}

int filter_name_order(const void *a, const void *b)
{
	return order(*(const struct span *)a, *(const struct span *)b);
}

/* Searches the named slots.  Returns f->nslots if there is none. */
static unsigned find_named(const struct filter *f, struct span name)
{
	unsigned from = FILTER_SLOT_NAMED, to = f->nslots;

	while (from < to) {
		unsigned mid = from + (to - from) / 2;
		int c = order(name, f->names[mid]);
		if (c == 0)
			return mid;
		if (c > 0)
			from = mid + 1;
		else
			to = mid;
	}
	return f->nslots;
}

unsigned filter_name_find(const struct filter *f, struct span name)
{
	unsigned fixed = filter_name_fixed(name);

	return fixed == FILTER_SLOT_NAMED ? find_named(f, name) : fixed;
}

bool filter_needs_properties(const struct filter *f)
{
	return f->nslots > FILTER_SLOT_NAMED;
}

/* Recurses to the left only: a tree can be deep to the right. */
static bool node_uses(const struct filter_node *n, unsigned slot)
{
	for (; n != NULL; n = n->right) {
		if (n->kind == FILTER_COMPARE)
			return n->slot == slot;
		if (node_uses(n->left, slot))
			return true;
	}
	return false;
}

bool filter_uses(const struct filter *f, unsigned slot)
{
	return node_uses(f->root, slot);
}

/* Clears the named slots and returns how many there are. */
static unsigned unbind(const struct filter *f, const struct value **values)
{
	for (unsigned slot = FILTER_SLOT_NAMED; slot < f->nslots; slot++)
		values[slot] = NULL;
	return filter_needs_properties(f) ? f->nslots - FILTER_SLOT_NAMED : 0;
}

void filter_bind(const struct filter *f, const struct entity *e, const struct value **values)
{
	unsigned missing = unbind(f, values);

	for (size_t i = 0; missing > 0 && i < e->nprops; i++) {
		unsigned slot = find_named(f, e->props[i].name);
		if (slot == f->nslots || values[slot] != NULL)
			continue;
		values[slot] = &e->props[i].value;
		missing--;
	}
}

enum err filter_bind_document(const struct filter *f, struct span document, struct arena *arena,
	struct value *memory, const struct value **values)
{
	unsigned missing = unbind(f, values);
	struct document_walk w;
	struct document_property p;
	enum err e = ERR_OK;

	if (!document_walk_begin(document, &w))
		return ERR_CORRUPT;
	while (missing > 0 && (e = document_walk_next(&w, &p)) == ERR_OK) {
		unsigned slot = find_named(f, p.name);
		if (slot == f->nslots || values[slot] != NULL)
			continue;
		e = document_value(&p, arena, &memory[slot]);
		if (e != ERR_OK)
			return e;
		values[slot] = &memory[slot];
		missing--;
	}
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}
