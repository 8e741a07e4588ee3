/* SPDX-License-Identifier: MIT
 * The list of properties is on the heap and survives entity_reset().  Everything else is in the
 * arena. */
#include "model/entity.h"

#include "base/clock.h"
#include "base/text.h"
#include "model/key.h"
#include "model/names.h"

#include <stdlib.h>

void entity_fini(struct entity *e)
{
	free(e->props);
	arena_fini(&e->arena);
	*e = (struct entity){ 0 };
}

void entity_reset(struct entity *e)
{
	struct entity empty = { .props = e->props, .cap = e->cap, .arena = e->arena };

	arena_reset(&empty.arena);
	*e = empty;
}

static enum err grow(struct entity *e)
{
	size_t cap = e->cap == 0 ? 16 : e->cap * 2;
	struct property *p = reallocarray(e->props, cap, sizeof(*p));

	if (p == NULL)
		return ERR_NO_MEMORY;
	e->props = p;
	e->cap = cap;
	return ERR_OK;
}

enum err entity_add(struct entity *e, struct span name, const struct value *value)
{
	enum err err = e->nprops == e->cap ? grow(e) : ERR_OK;

	if (err != ERR_OK)
		return err;
	e->props[e->nprops++] = (struct property){ name, *value };
	return ERR_OK;
}

struct property *entity_find(const struct entity *e, struct span name)
{
	for (size_t i = 0; i < e->nprops; i++) {
		if (span_eq(e->props[i].name, name))
			return &e->props[i];
	}
	return NULL;
}

static size_t value_size(const struct value *v)
{
	switch (v->type) {
	case EDM_STRING:
		return 4 + 2 * utf16_len(v->bytes);
	case EDM_BINARY:
		return 4 + v->bytes.n;
	case EDM_BOOLEAN:
		return 1;
	case EDM_INT32:
		return 4;
	case EDM_INT64:
	case EDM_DOUBLE:
	case EDM_DATETIME:
		return 8;
	case EDM_GUID:
		return 16;
	case EDM_COUNT_:
		break;
	}
	return 0;
}

size_t entity_size(const struct entity *e)
{
	size_t n = 4;

	if (e->has_pk)
		n += 2 * utf16_len(e->pk);
	if (e->has_rk)
		n += 2 * utf16_len(e->rk);
	for (size_t i = 0; i < e->nprops; i++)
		n += 8 + 2 * utf16_len(e->props[i].name) + value_size(&e->props[i].value);
	return n;
}

static bool is_system(struct span name)
{
	return span_is(name, "PartitionKey") || span_is(name, "RowKey") ||
		span_is(name, "Timestamp");
}

static int shown(struct span name)
{
	return name.n < 100 ? (int)name.n : 100;
}

static enum err check_string(const struct property *p, struct err_detail *detail)
{
	struct span s = p->value.bytes;

	if (!utf8_valid(s))
		return err_set(detail, ERR_VALUE_INVALID, "The value of '%.*s' is not valid UTF-8.",
			shown(p->name), p->name.p);
	if (s.n > LIMIT_STRING_UNITS && utf16_len(s) > LIMIT_STRING_UNITS)
		return err_set(detail, ERR_PROPERTY_TOO_LARGE,
			"The value of '%.*s' is longer than %d UTF-16 units (64 KiB).",
			shown(p->name), p->name.p, LIMIT_STRING_UNITS);
	return ERR_OK;
}

static enum err check_value(const struct property *p, struct err_detail *detail)
{
	const struct value *v = &p->value;

	if ((unsigned)v->type >= EDM_COUNT_)
		return err_set(detail, ERR_VALUE_INVALID, "The value of '%.*s' has no type.",
			shown(p->name), p->name.p);
	if (v->type == EDM_STRING)
		return check_string(p, detail);
	if (v->type == EDM_BINARY && v->bytes.n > LIMIT_BINARY_BYTES)
		return err_set(detail, ERR_PROPERTY_TOO_LARGE,
			"The value of '%.*s' is longer than %d bytes (64 KiB).", shown(p->name),
			p->name.p, LIMIT_BINARY_BYTES);
	if (v->type == EDM_DATETIME && (v->ticks < 0 || v->ticks > TICKS_MAX))
		return err_set(detail, ERR_OUT_OF_RANGE, "The '%.*s' parameter is out of range.",
			shown(p->name), p->name.p);
	return ERR_OK;
}

enum err property_check(const struct property *p, struct err_detail *detail)
{
	enum err e = property_name_check(p->name, detail);

	return e != ERR_OK ? e : check_value(p, detail);
}

static int by_name(const void *a, const void *b)
{
	return span_cmp((*(const struct property *const *)a)->name,
		(*(const struct property *const *)b)->name);
}

/* e has at most LIMIT_PROPERTIES properties. */
static enum err check_duplicates(const struct entity *e, struct err_detail *detail)
{
	const struct property *sorted[LIMIT_PROPERTIES];

	for (size_t i = 0; i < e->nprops; i++)
		sorted[i] = &e->props[i];
	qsort(sorted, e->nprops, sizeof(sorted[0]), by_name);
	for (size_t i = 1; i < e->nprops; i++) {
		if (by_name(&sorted[i - 1], &sorted[i]) == 0)
			return err_set(detail, ERR_PROPERTY_DUPLICATE,
				"The property '%.*s' is specified more than one time.",
				shown(sorted[i]->name), sorted[i]->name.p);
	}
	return ERR_OK;
}

static enum err check_keys(const struct entity *e, struct err_detail *detail)
{
	enum err err = e->has_pk ? key_check(e->pk, "PartitionKey", detail) : ERR_OK;

	if (err == ERR_OK && e->has_rk)
		err = key_check(e->rk, "RowKey", detail);
	return err;
}

static enum err check_properties(const struct entity *e, struct err_detail *detail)
{
	for (size_t i = 0; i < e->nprops; i++) {
		enum err err = property_check(&e->props[i], detail);
		if (err != ERR_OK)
			return err;
		if (is_system(e->props[i].name))
			return err_set(detail, ERR_PROPERTY_DUPLICATE,
				"'%.*s' is a system property.", shown(e->props[i].name),
				e->props[i].name.p);
	}
	return ERR_OK;
}

enum err entity_check(const struct entity *e, struct err_detail *detail)
{
	enum err err = check_keys(e, detail);

	if (err == ERR_OK && e->nprops > LIMIT_PROPERTIES)
		err = err_set(
			detail, ERR_TOO_MANY_PROPERTIES, "%s", err_text(ERR_TOO_MANY_PROPERTIES));
	if (err == ERR_OK)
		err = check_properties(e, detail);
	if (err == ERR_OK)
		err = check_duplicates(e, detail);
	if (err == ERR_OK && entity_size(e) > LIMIT_ENTITY_BYTES)
		err = err_set(detail, ERR_ENTITY_TOO_LARGE, "%s", err_text(ERR_ENTITY_TOO_LARGE));
	return err;
}

/* Copies the bytes into the arena.  Returns false when memory is out. */
static bool copy_value(struct arena *to, const struct value *from, struct value *ret)
{
	*ret = *from;
	if (from->type != EDM_STRING && from->type != EDM_BINARY)
		return true;
	ret->bytes = arena_copy(to, from->bytes);
	return ret->bytes.p != NULL;
}

static enum err merge_one(struct entity *into, const struct property *from)
{
	struct property *there = entity_find(into, from->name);
	struct span name;
	struct value value;

	if (!copy_value(&into->arena, &from->value, &value))
		return ERR_NO_MEMORY;
	if (there != NULL) {
		there->value = value;
		return ERR_OK;
	}
	name = arena_copy(&into->arena, from->name);
	return name.p == NULL ? ERR_NO_MEMORY : entity_add(into, name, &value);
}

enum err entity_merge(struct entity *into, const struct entity *patch)
{
	enum err err = ERR_OK;

	for (size_t i = 0; err == ERR_OK && i < patch->nprops; i++)
		err = merge_one(into, &patch->props[i]);
	return err;
}
