/* SPDX-License-Identifier: MIT */
#include "codec/entity_atom.h"

#include "base/text.h"
#include "codec/atom_entry.h"
#include "codec/member_table.h"
#include "codec/property_text.h"
#include "codec/xml_events.h"
#include "model/key.h"
#include "model/names.h"

struct decoder {
	struct entity *entity;
	struct member_table seen;
};

/* For printf's "%.*s". */
static int shown(struct span name)
{
	return name.n < 100 ? (int)name.n : 100;
}

static enum err duplicate(struct span name, struct err_detail *detail)
{
	return err_set(detail, ERR_PROPERTY_DUPLICATE,
		"The property '%.*s' is specified more than one time.", shown(name), name.p);
}

static enum err take_key(struct entity *e, const struct atom_property *p, struct err_detail *detail)
{
	bool pk = span_is(p->name, "PartitionKey");
	struct span key;

	if (p->is_null)
		return ERR_KEY_MISSING;
	if (p->type != EDM_STRING)
		return err_set(detail, ERR_VALUE_INVALID,
			"The property '%.*s': a key must be a string.", shown(p->name), p->name.p);
	enum err err = key_check(p->text, pk ? "PartitionKey" : "RowKey", detail);
	if (err != ERR_OK)
		return err;
	key = arena_copy(&e->arena, p->text);
	*(pk ? &e->pk : &e->rk) = key;
	*(pk ? &e->has_pk : &e->has_rk) = true;
	return key.p == NULL ? ERR_NO_MEMORY : ERR_OK;
}

static enum err without_blanks(struct arena *arena, struct span *text)
{
	char *to = arena_alloc(arena, text->n);
	size_t n = 0;

	if (to == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < text->n; i++)
		if (memchr(" \t\r\n", text->p[i], 4) == NULL)
			to[n++] = text->p[i];
	*text = span_make(to, n);
	return ERR_OK;
}

/* Returns the text that the parser of the type expects.  Tools break lines anywhere, which matters
 * only in a String.  The copy of a String outlives the reader. */
static enum err value_text(struct arena *arena, const struct atom_property *p, struct span *ret)
{
	if (p->type == EDM_STRING) {
		*ret = arena_copy(arena, p->text);
		return ret->p == NULL ? ERR_NO_MEMORY : ERR_OK;
	}
	*ret = xml_trim(p->text);
	return p->type == EDM_BINARY ? without_blanks(arena, ret) : ERR_OK;
}

static enum err take_value(struct entity *e, struct span name, const struct atom_property *p,
	struct err_detail *detail)
{
	struct property property = { .name = name };
	struct span text;

	if (e->nprops == LIMIT_PROPERTIES)
		return ERR_TOO_MANY_PROPERTIES;
	enum err err = value_text(&e->arena, p, &text);
	if (err == ERR_OK)
		err = property_text_parse(name, p->type, text, &e->arena, &property.value, detail);
	if (err == ERR_OK)
		err = property_check(&property, detail);
	return err == ERR_OK ? entity_add(e, name, &property.value) : err;
}

static enum err take_property(void *arg, const struct atom_property *p, struct err_detail *detail)
{
	struct decoder *d = arg;
	struct span name = arena_copy(&d->entity->arena, p->name);
	struct member *m = name.p == NULL ? NULL : member_table_get(&d->seen, name);

	if (m == NULL)
		return ERR_NO_MEMORY;
	if (m->has_value)
		return duplicate(name, detail);
	m->has_value = true;
	if (span_is(name, "PartitionKey") || span_is(name, "RowKey"))
		return take_key(d->entity, p, detail);
	if (span_is(name, "Timestamp"))
		return ERR_OK;
	return p->is_null ? property_name_check(name, detail)
			  : take_value(d->entity, name, p, detail);
}

enum err entity_atom_decode(struct span text, struct entity *ret, struct err_detail *detail)
{
	struct decoder d;
	const struct atom_reader reader = { take_property, &d };

	d.entity = ret;
	entity_reset(ret);
	member_table_init(&d.seen, &ret->arena);
	enum err e = atom_entry_read(text, &reader, detail);
	if (e == ERR_OK && entity_size(ret) > LIMIT_ENTITY_BYTES)
		return err_set(detail, ERR_ENTITY_TOO_LARGE, "%s", err_text(ERR_ENTITY_TOO_LARGE));
	return e;
}

struct table_decoder {
	struct arena *arena;
	struct span name;
};

/* Ignores unknown properties, which other protocol versions may have. */
static enum err take_table(void *arg, const struct atom_property *p, struct err_detail *detail)
{
	struct table_decoder *d = arg;

	if (!span_is(p->name, "TableName") || p->is_null || p->type != EDM_STRING)
		return ERR_OK;
	if (d->name.p != NULL)
		return duplicate(p->name, detail);
	d->name = arena_copy(d->arena, p->text);
	return d->name.p == NULL ? ERR_NO_MEMORY : ERR_OK;
}

enum err table_atom_decode(
	struct span text, struct arena *arena, struct span *ret_name, struct err_detail *detail)
{
	struct table_decoder d = { .arena = arena };
	const struct atom_reader reader = { take_table, &d };
	enum err e = atom_entry_read(text, &reader, detail);

	if (e != ERR_OK)
		return e;
	*ret_name = d.name;
	return d.name.p != NULL
		? ERR_OK
		: err_set(detail, ERR_KEY_MISSING, "The entry has no string property 'TableName'.");
}
