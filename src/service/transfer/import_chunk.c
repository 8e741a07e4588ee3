/* SPDX-License-Identifier: MIT */
#include "model/key.h"
#include "service/core/admission.h"
#include "service/transfer/import_parts.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash_more(uint32_t h, struct span s)
{
	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * 16777619u;
	return (h ^ 0xFFu) * 16777619u;
}

/* Returns the slot of the row with these keys, or the free one for it. */
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

bool chunk_has(struct import_chunk *c, const struct import_row *row)
{
	return *slot_of(c, row->pk, row->rk) != 0;
}

static size_t bytes_of_entity(const struct entity *e)
{
	return entity_size(e) + e->cap * sizeof(e->props[0]);
}

void chunk_append(struct import_chunk *c, enum entity_op_kind kind, struct import_place at,
	const struct import_row *row, size_t text_n)
{
	*slot_of(c, row->pk, row->rk) = (uint16_t)(c->n + 1);
	c->ops[c->n] = (struct entity_op){ .kind = kind,
		.pk = row->pk,
		.rk = row->rk,
		.entity = row->entity,
		.document = row->document,
		.document_flags = ITEM_CANONICAL,
		.attrs = ATTRS_UNSET };
	c->places[c->n++] = at;
	c->bytes += text_n + (row->entity != NULL ? bytes_of_entity(row->entity) : row->document.n);
	c->decoded += row->entity != NULL;
	if (c->used < c->decoded)
		c->used = c->decoded;
}

/* Converts a key to order form; uses the key's own memory if both are equal. */
static bool order_form(struct arena *text, struct span key, struct span *ret)
{
	*ret = key;
	if (key_is_order(key))
		return true;
	char *order = arena_alloc(text, key.n);
	if (order == NULL)
		return false;
	key_to_order(key.p, key.n, order);
	*ret = span_make(order, key.n);
	return true;
}

static enum change_cond cond_of(enum entity_op_kind kind)
{
	if (kind == ENTITY_INSERT)
		return COND_ABSENT;
	return kind == ENTITY_REPLACE ? COND_PRESENT : COND_NONE;
}

/* ---- the order of the rows in the store ---- */

/* The store appends new rows to pages.  With rows of a quarter of a page, an eighth of each page
 * would stay empty.  So one of the next few rows may come before a row that does not fit. */
#define PAGE_BYTES 4088u
#define PAGE_SHARE 8 /* with smaller rows little space is lost, so they keep their order */
#define WINDOW 8
#define ROW_EXTRA 20u /* bytes of a row besides its key and document */

static size_t bytes_of(const struct entity_op *op)
{
	size_t n = op->rk.n + op->document.n + ROW_EXTRA;
	return n < PAGE_BYTES ? n : PAGE_BYTES;
}

/* Returns the first row of the window that fits, else the first row. */
static size_t choose(const struct import_chunk *c, const uint16_t *window, size_t n, size_t room)
{
	for (size_t i = 0; i < n; i++)
		if (bytes_of(&c->ops[window[i]]) <= room)
			return i;
	return 0;
}

/* Sets c->order[0..n) to the indexes from `at` on. */
static void put_in_order(struct import_chunk *c, size_t at, size_t n)
{
	uint16_t window[WINDOW];
	size_t waiting = 0, next = at, all = 0, room = 0;
	for (size_t i = at; i < at + n; i++)
		all += bytes_of(&c->ops[i]);
	size_t width = all / n < PAGE_BYTES / PAGE_SHARE ? 1 : WINDOW;
	for (size_t i = 0; i < n; i++) {
		while (waiting < width && next < at + n)
			window[waiting++] = (uint16_t)next++;
		size_t k = choose(c, window, waiting, room), used = bytes_of(&c->ops[window[k]]);
		c->order[i] = window[k];
		room = (used <= room ? room : PAGE_BYTES) - used;
		memmove(&window[k], &window[k + 1], (--waiting - k) * sizeof(window[0]));
	}
}

/* ---- committing ---- */

static bool put_row(struct import_chunk *c, size_t i, uint64_t table_id)
{
	const struct entity_op *op = &c->ops[c->order[i]];
	struct change *change = &c->changes[i];
	*change = (struct change){ .op = CHANGE_PUT,
		.kind = ITEM_ROW,
		.cond = cond_of(op->kind),
		.body = op->document,
		.item_flags = ITEM_CANONICAL,
		.attrs = ATTRS_UNSET };
	struct item_ref *at = &change->at;
	*at = (struct item_ref){ .parent = table_id, .has_pk = true, .class = CLASS_KEYED };
	return order_form(&c->text, op->pk, &at->pk) && order_form(&c->text, op->rk, &at->key);
}

size_t chunk_partition(const struct import_chunk *c, size_t at, size_t n)
{
	size_t same = 1;
	while (same < n && span_eq(c->ops[at + same].pk, c->ops[at].pk))
		same++;
	return same;
}

/* Bulk loads are counted but never refused. */
static void count(
	const struct import_chunk *c, size_t at, size_t n, struct service *s, uint64_t table_id)
{
	for (size_t end = at + n, same; at < end; at += same) {
		same = chunk_partition(c, at, end - at);
		admission_count(s, table_id, c->ops[at].pk, HEAT_CHANGED, same);
	}
}

/* Does what entities_apply() would do, without the steps that documents make unnecessary.  There
 * are no companion changes. */
enum err chunk_apply(struct import_chunk *c, size_t at, size_t n, struct service *s,
	enum origin origin, uint64_t table_id, struct err_detail *why)
{
	if (c->decoded > 0)
		return entities_apply(s, origin, table_id, &c->ops[at], n, 0, why);
	put_in_order(c, at, n);
	for (size_t i = 0; i < n; i++)
		if (!put_row(c, i, table_id))
			return ERR_NO_MEMORY;
	count(c, at, n, s, table_id);
	enum err e = service_apply(s, origin, c->changes, n, false, why);
	changes_fini(c->changes, n);
	if (e != ERR_OK && why->op < n)
		why->op = c->order[why->op] - at;
	return e;
}

bool chunk_full(const struct import_chunk *c)
{
	return c->n == CHUNK_ROWS || c->bytes > CHUNK_BYTES;
}

void chunk_clear(struct import_chunk *c)
{
	for (size_t i = 0; i < CHUNK_ROWS && i <= c->decoded; i++) {
		/* Frees the memory of big rows; small ones keep it for reuse. */
		if (c->bytes > CHUNK_BYTES / 4)
			entity_fini(&c->entities[i]);
		else
			entity_reset(&c->entities[i]);
	}
	memset(c->slots, 0, sizeof(c->slots));
	arena_reset(&c->text);
	c->n = 0;
	c->bytes = 0;
	c->decoded = 0;
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
