/* SPDX-License-Identifier: MIT */
#include "service/import_parts.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash_more(uint32_t h, struct span s)
{
	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * 16777619u;
	return (h ^ 0xFFu) * 16777619u;
}

/* The slot of the row with these keys, or the free one where it would go. */
static uint16_t *slot_of(struct import_chunk *c, struct span pk, struct span rk)
{
	uint32_t h = hash_more(hash_more(2166136261u, pk), rk);
	for (uint32_t at = h ^ (h >> 15);; at++) {
		uint16_t *slot = &c->slots[at % CHUNK_SLOTS];
		if (*slot == 0)
			return slot;
		const struct entity_op *op = &c->ops[*slot - 1];
		if (span_eq(op->pk, pk) && span_eq(op->rk, rk))
			return slot;
	}
}

bool chunk_has_next(struct import_chunk *c)
{
	const struct entity *e = &c->entities[c->n];
	return *slot_of(c, e->pk, e->rk) != 0;
}

void chunk_append(
	struct import_chunk *c, enum entity_op_kind kind, struct import_place at, size_t text_n)
{
	struct entity *e = &c->entities[c->n];
	*slot_of(c, e->pk, e->rk) = (uint16_t)(c->n + 1);
	c->ops[c->n] = (struct entity_op){
		.kind = kind, .pk = e->pk, .rk = e->rk, .entity = e, .attrs = ATTRS_UNSET
	};
	c->places[c->n++] = at;
	c->bytes += entity_size(e) + text_n;
	if (c->used < c->n)
		c->used = c->n;
}

bool chunk_full(const struct import_chunk *c)
{
	return c->n == CHUNK_ROWS || c->bytes > CHUNK_BYTES;
}

void chunk_clear(struct import_chunk *c)
{
	for (size_t i = 0; i < c->n; i++) {
		/* Big rows give their memory back, the many small ones keep it. */
		if (c->bytes > CHUNK_BYTES / 4)
			entity_fini(&c->entities[i]);
		else
			entity_reset(&c->entities[i]);
	}
	memset(c->slots, 0, sizeof(c->slots));
	arena_reset(&c->text);
	c->n = 0;
	c->bytes = 0;
}

void chunk_free(struct import_chunk *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < CHUNK_ROWS && i <= c->used; i++)
		entity_fini(&c->entities[i]);
	arena_fini(&c->text);
	free(c);
}
