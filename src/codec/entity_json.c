/* SPDX-License-Identifier: MIT
 * The decoder makes two passes.  It first collects the scanner's members by name, because an
 * annotation can follow its property.  Then each entry becomes a typed property.
 *
 * So a syntax error comes before all others, and each error has a position.  Strings without
 * escapes borrow from the text. */
#include "codec/entity_json.h"

#include "base/clock.h"
#include "base/text.h"
#include "codec/edm_text.h"
#include "codec/json_scan.h"
#include "codec/member_table.h"
#include "codec/property_text.h"
#include "model/key.h"
#include "model/names.h"

#include <stdio.h>

static const struct span annotation = { "@odata.type", 11 };

struct decoder {
	struct span text;
	enum entity_json_rules rules;
	struct entity *entity;
	struct entity_json_facts facts;
	struct err_detail *detail;
	struct member_table table;
};

/* For printf's "%.*s". */
static int shown(struct span name)
{
	return name.n < 100 ? (int)name.n : 100;
}

/* Adds the position to the message of a lower layer. */
static enum err at(struct decoder *d, enum err e, size_t offset, const char *message)
{
	return err_set_at(d->detail, e, d->text.p, offset, "%s", message);
}

static enum err resolve(struct decoder *d, struct span raw, bool escaped, struct span *ret)
{
	char *p;

	*ret = raw;
	if (!escaped)
		return ERR_OK;
	p = arena_alloc(&d->entity->arena, raw.n);
	if (p == NULL)
		return ERR_NO_MEMORY;
	*ret = span_make(p, json_unescape(raw, p));
	return ERR_OK;
}

static bool is_key(struct span name)
{
	return span_is(name, "PartitionKey") || span_is(name, "RowKey");
}

static enum err duplicate(struct decoder *d, struct span name, size_t offset)
{
	return err_set_at(d->detail, ERR_PROPERTY_DUPLICATE, d->text.p, offset,
		"The property '%.*s' is specified more than one time.", shown(name), name.p);
}

/* name is without "@odata.type".  Timestamp is dropped, whatever its type. */
static enum err note_type(struct decoder *d, struct member *m, const struct json_member *j)
{
	struct span type;
	enum err e;

	if (m->has_type)
		return duplicate(d, m->name, j->offset);
	m->has_type = true;
	if (!m->has_value)
		m->offset = j->offset;
	if (is_key(m->name) || span_is(m->name, "Timestamp"))
		d->facts.has_system = true;
	if (span_is(m->name, "Timestamp"))
		return ERR_OK;
	e = resolve(d, j->value, j->value_escaped, &type);
	if (e != ERR_OK)
		return e;
	if (j->token != JSON_TOKEN_STRING || !edm_from_name(type, &m->type))
		return err_set_at(d->detail, ERR_VALUE_INVALID, d->text.p, j->value_offset,
			"'%.*s' is not a type that the property '%.*s' can have.", shown(type),
			type.p, shown(m->name), m->name.p);
	return ERR_OK;
}

static enum err note_value(struct decoder *d, struct member *m, const struct json_member *j)
{
	if (m->has_value)
		return duplicate(d, m->name, j->offset);
	m->has_value = true;
	m->token = j->token;
	m->value = j->value;
	m->escaped = j->value_escaped;
	m->offset = j->value_offset;
	return ERR_OK;
}

static enum err gather_one(struct decoder *d, const struct json_member *j)
{
	struct span name;
	bool is_type;
	struct member *m;
	enum err e = resolve(d, j->name, j->name_escaped, &name);

	if (e != ERR_OK)
		return e;
	if (span_starts(name, SPAN_LIT("odata."))) {
		d->facts.has_system = true;
		return ERR_OK;
	}
	is_type = span_ends(name, annotation);
	if (is_type)
		name.n -= annotation.n;
	m = member_table_get(&d->table, name);
	if (m == NULL)
		return ERR_NO_MEMORY;
	return is_type ? note_type(d, m, j) : note_value(d, m, j);
}

static bool is_blank(struct span text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (memchr(" \t\r\n", text.p[i], 4) == NULL)
			return false;
	}
	return true;
}

static enum err cut_short(struct decoder *d)
{
	if (is_blank(d->text))
		return err_set(d->detail, ERR_EMPTY, "%s", err_text(ERR_EMPTY));
	return at(d, ERR_INCOMPLETE, d->text.n, err_text(ERR_INCOMPLETE));
}

static enum err gather(struct decoder *d)
{
	struct json_scan scan = { 0 };
	struct json_member j;
	enum json_scan_result r;
	enum err e = ERR_OK;

	/* A broken rule is reported only if the syntax is valid to the end. */
	for (r = json_scan_next(&scan, d->text, &j); r == JSON_SCAN_MEMBER;
		r = json_scan_next(&scan, d->text, &j)) {
		if (e == ERR_OK)
			e = gather_one(d, &j);
	}
	if (r == JSON_SCAN_BAD)
		return err_set_at(d->detail, ERR_INVALID_INPUT, d->text.p, scan.bad_at,
			"Not a valid document: %s.", scan.why);
	return r == JSON_SCAN_MORE ? cut_short(d) : e;
}

static enum err bad_value(struct decoder *d, const struct member *m, enum err e, const char *what)
{
	return err_set_at(d->detail, e, d->text.p, m->offset, "The property '%.*s': %s.",
		shown(m->name), m->name.p, what);
}

static enum err infer_double(struct decoder *d, const struct member *m, struct value *ret)
{
	enum err e = edm_text_parse(EDM_DOUBLE, m->value, ret, NULL, NULL);

	return e == ERR_OK || e == ERR_NO_MEMORY
		? e
		: bad_value(d, m, ERR_VALUE_INVALID, "the number is too large");
}

/* An integer without annotation is Int32 if it fits; else the rules decide. */
static enum err infer_integer(struct decoder *d, const struct member *m, struct value *ret)
{
	int64_t v;
	bool fits = text_to_i64(m->value, &v);

	if (fits && v >= INT32_MIN && v <= INT32_MAX) {
		*ret = (struct value){ .type = EDM_INT32, .int32 = (int32_t)v };
		return ERR_OK;
	}
	if (d->rules == ENTITY_JSON_REST)
		return infer_double(d, m, ret);
	if (!fits)
		return bad_value(d, m, ERR_VALUE_INVALID, "the integer does not fit 64 bits");
	*ret = (struct value){ .type = EDM_INT64, .int64 = v };
	return ERR_OK;
}

/* The token is never null, which take_member() handles, and never an object, which the scanner
 * refuses. */
static enum err infer(struct decoder *d, const struct member *m, struct value *ret)
{
	if (m->token == JSON_TOKEN_STRING) {
		ret->type = EDM_STRING;
		return resolve(d, m->value, m->escaped, &ret->bytes);
	}
	if (m->token == JSON_TOKEN_INTEGER)
		return infer_integer(d, m, ret);
	if (m->token == JSON_TOKEN_NUMBER)
		return infer_double(d, m, ret);
	*ret = (struct value){ .type = EDM_BOOLEAN, .boolean = m->token == JSON_TOKEN_TRUE };
	return ERR_OK;
}

/* A string can represent every type, a literal only some.  The token is never null or an object, as
 * in infer(). */
static bool may_be_literal(enum edm_type type, enum json_token token)
{
	if (token == JSON_TOKEN_STRING)
		return true;
	if (token == JSON_TOKEN_INTEGER || token == JSON_TOKEN_NUMBER)
		return type == EDM_INT32 || type == EDM_INT64 || type == EDM_DOUBLE;
	return type == EDM_BOOLEAN;
}

static enum err convert(struct decoder *d, const struct member *m, struct value *ret)
{
	struct err_detail why;
	struct span text;
	enum err e = resolve(d, m->value, m->escaped, &text);

	if (e != ERR_OK)
		return e;
	if (!may_be_literal(m->type, m->token)) {
		(void)snprintf(why.text, sizeof(why.text), "this is not how %s is written",
			edm_name(m->type));
		return bad_value(d, m, ERR_VALUE_INVALID, why.text);
	}
	e = property_text_parse(m->name, m->type, text, &d->entity->arena, ret, &why);
	return e == ERR_OK || e == ERR_NO_MEMORY ? e : at(d, e, m->offset, why.text);
}

static enum err take_key(struct decoder *d, const struct member *m)
{
	bool pk = span_is(m->name, "PartitionKey");
	struct err_detail why;
	struct span key;
	enum err e;

	d->facts.has_keys = d->facts.has_system = true;
	if (m->token == JSON_TOKEN_NULL && d->rules == ENTITY_JSON_REST)
		return at(d, ERR_KEY_MISSING, m->offset, err_text(ERR_KEY_MISSING));
	if (m->token != JSON_TOKEN_STRING || (m->has_type && m->type != EDM_STRING))
		return bad_value(d, m, ERR_VALUE_INVALID, "a key must be a string");
	e = resolve(d, m->value, m->escaped, &key);
	if (e != ERR_OK)
		return e;
	e = key_check(key, pk ? "PartitionKey" : "RowKey", &why);
	if (e != ERR_OK)
		return at(d, e, m->offset, why.text);
	*(pk ? &d->entity->pk : &d->entity->rk) = key;
	*(pk ? &d->entity->has_pk : &d->entity->has_rk) = true;
	return ERR_OK;
}

static enum err take_property(struct decoder *d, const struct member *m)
{
	struct property p = { .name = m->name };
	struct err_detail why;
	enum err e;

	if (d->entity->nprops == LIMIT_PROPERTIES)
		return at(d, ERR_TOO_MANY_PROPERTIES, m->offset, err_text(ERR_TOO_MANY_PROPERTIES));
	e = m->has_type ? convert(d, m, &p.value) : infer(d, m, &p.value);
	if (e != ERR_OK)
		return e;
	e = property_check(&p, &why);
	if (e != ERR_OK)
		return at(d, e, m->offset, why.text);
	return entity_add(d->entity, p.name, &p.value);
}

static enum err take_member(struct decoder *d, const struct member *m)
{
	struct err_detail why;
	enum err e;

	if (!m->has_value)
		return ERR_OK; /* an annotation without a property */
	if (is_key(m->name))
		return take_key(d, m);
	if (span_is(m->name, "Timestamp")) {
		d->facts.has_system = true;
		return ERR_OK;
	}
	if (m->token != JSON_TOKEN_NULL)
		return take_property(d, m);
	e = property_name_check(m->name, &why);
	return e == ERR_OK ? ERR_OK : at(d, e, m->offset, why.text);
}

static enum err build(struct decoder *d)
{
	for (size_t i = 0; i < d->table.n; i++) {
		enum err e = take_member(d, &d->table.rows[i]);
		if (e != ERR_OK)
			return e;
	}
	/* A property counts less than four times its text, so most documents need no counting. */
	if (d->text.n > LIMIT_ENTITY_BYTES / 4 && entity_size(d->entity) > LIMIT_ENTITY_BYTES)
		return err_set(
			d->detail, ERR_ENTITY_TOO_LARGE, "%s", err_text(ERR_ENTITY_TOO_LARGE));
	return ERR_OK;
}

enum err entity_json_decode(struct span text, enum entity_json_rules rules, struct entity *ret,
	struct entity_json_facts *ret_facts, struct err_detail *detail)
{
	struct decoder d;
	enum err e;

	d.text = text;
	d.rules = rules;
	d.entity = ret;
	d.facts = (struct entity_json_facts){ 0 };
	d.detail = detail;
	entity_reset(ret);
	member_table_init(&d.table, &ret->arena);
	e = gather(&d);
	if (e == ERR_OK)
		e = build(&d);
	if (e == ERR_OK && ret_facts != NULL)
		*ret_facts = d.facts;
	return e;
}

/* Property names are identifiers and need no escapes. */
static void put_name(struct span name, struct buf *out)
{
	if (out->len > 0 && out->data[out->len - 1] != '{')
		buf_add_char(out, ',');
	buf_add_char(out, '"');
	buf_add_span(out, name);
}

static void put_string(const char *name, struct span value, struct buf *out)
{
	put_name(span_of(name), out);
	buf_add(out, "\":", 2);
	buf_add_json(out, value);
}

static bool goes_bare(const struct value *v)
{
	if (v->type == EDM_DOUBLE)
		return __builtin_isfinite(v->dbl);
	return v->type == EDM_STRING || v->type == EDM_BOOLEAN || v->type == EDM_INT32;
}

void entity_json_encode_property(
	struct span name, const struct value *v, bool annotated, struct buf *out)
{
	bool bare = goes_bare(v);

	put_name(name, out);
	if (!bare && annotated) {
		buf_add_str(out, "@odata.type\":\"");
		buf_add_str(out, edm_name(v->type));
		buf_add(out, "\",\"", 3);
		buf_add_span(out, name);
	}
	buf_add(out, "\":", 2);
	if (v->type == EDM_STRING) {
		buf_add_json(out, v->bytes);
		return;
	}
	if (!bare)
		buf_add_char(out, '"');
	edm_text_format(v, out);
	if (!bare)
		buf_add_char(out, '"');
}

void entity_json_encode(const struct entity *e, unsigned flags, struct buf *out)
{
	buf_add_char(out, '{');
	if ((flags & ENTITY_JSON_PK) != 0 && e->has_pk)
		put_string("PartitionKey", e->pk, out);
	if ((flags & ENTITY_JSON_RK) != 0 && e->has_rk)
		put_string("RowKey", e->rk, out);
	if ((flags & ENTITY_JSON_TIMESTAMP) != 0) {
		struct value time = { .type = EDM_DATETIME, .ticks = e->timestamp };
		entity_json_encode_property(SPAN_LIT("Timestamp"), &time, true, out);
	}
	for (size_t i = 0; i < e->nprops; i++)
		entity_json_encode_property(e->props[i].name, &e->props[i].value, true, out);
	buf_add_char(out, '}');
	if ((flags & ENTITY_JSON_NEWLINE) != 0)
		buf_add_char(out, '\n');
}

bool entity_json_members(struct span document, struct span *ret)
{
	size_t n = document.n;

	if (n > 0 && document.p[n - 1] == '\n')
		n--;
	if (n < 2 || document.p[0] != '{' || document.p[n - 1] != '}')
		return false;
	*ret = span_make(document.p + 1, n - 2);
	return true;
}
