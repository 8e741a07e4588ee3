/* SPDX-License-Identifier: MIT
 * The rows begin in the struct and move to the arena when there are many.  The index uses open
 * addressing and is at most half full. */
#include "codec/member_table.h"

#include "base/compiler.h"

#define LINEAR_MAX 16

void member_table_init(struct member_table *t, struct arena *arena)
{
	t->rows = t->first;
	t->n = 0;
	t->cap = ARRAY_LEN(t->first);
	t->index = NULL;
	t->mask = 0;
	/* The author of a document cannot know the address of the stack. */
	t->seed = (uint64_t)(uintptr_t)t * UINT64_C(0x9e3779b97f4a7c15);
	t->arena = arena;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 m = (unsigned __int128)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t hash_of(uint64_t seed, struct span s)
{
	uint64_t h = seed ^ s.n, word;

	for (; s.n >= sizeof(word); s = span_make(s.p + sizeof(word), s.n - sizeof(word))) {
		memcpy(&word, s.p, sizeof(word));
		h = mix(h ^ word, UINT64_C(0xa0761d6478bd642f) ^ seed);
	}
	word = 0;
	for (size_t i = 0; i < s.n; i++)
		word = word << 8 | (unsigned char)s.p[i];
	return mix(h ^ word, UINT64_C(0xe7037ed1a0b428db) ^ seed);
}

static bool is_row(const struct member *m, uint64_t hash, struct span name)
{
	return m->hash == hash && span_eq(m->name, name);
}

static void index_row(struct member_table *t, size_t row)
{
	size_t i = t->rows[row].hash & t->mask;

	while (t->index[i] != 0)
		i = (i + 1) & t->mask;
	t->index[i] = (uint32_t)row + 1;
}

static bool rebuild_index(struct member_table *t)
{
	size_t slots = t->cap * 4;

	while ((slots & (slots - 1)) != 0)
		slots += slots & -slots;
	t->index = arena_alloc(t->arena, slots * sizeof(*t->index));
	if (t->index == NULL)
		return false;
	memset(t->index, 0, slots * sizeof(*t->index));
	t->mask = slots - 1;
	for (size_t i = 0; i < t->n; i++)
		index_row(t, i);
	return true;
}

static struct member *find(const struct member_table *t, uint64_t hash, struct span name)
{
	if (t->index == NULL) {
		for (size_t i = 0; i < t->n; i++) {
			if (is_row(&t->rows[i], hash, name))
				return &t->rows[i];
		}
		return NULL;
	}
	for (size_t i = hash & t->mask; t->index[i] != 0; i = (i + 1) & t->mask) {
		struct member *m = &t->rows[t->index[i] - 1];
		if (is_row(m, hash, name))
			return m;
	}
	return NULL;
}

static bool grow(struct member_table *t)
{
	struct member *rows = arena_alloc(t->arena, 2 * t->cap * sizeof(*rows));

	if (rows == NULL)
		return false;
	memcpy(rows, t->rows, t->n * sizeof(*rows));
	t->rows = rows;
	t->cap *= 2;
	return rebuild_index(t); /* there are more than LINEAR_MAX rows */
}

struct member *member_table_get(struct member_table *t, struct span name)
{
	uint64_t hash = hash_of(t->seed, name);
	struct member *m = find(t, hash, name);

	if (m != NULL)
		return m;
	if (t->n == t->cap && !grow(t))
		return NULL;
	if (t->n == LINEAR_MAX && !rebuild_index(t))
		return NULL;
	m = &t->rows[t->n++];
	*m = (struct member){ .name = name, .hash = hash };
	if (t->index != NULL)
		index_row(t, t->n - 1);
	return m;
}
