/* SPDX-License-Identifier: MIT
 * For each name the splicer remembers the name that followed it last.  In rows of the same shape,
 * one comparison finds the next name.
 *
 * It declines repeated names, escapes in names and keys, and types and numbers that the encoder
 * writes differently. */
#include "codec/splicer.h"

#include "base/buf.h"
#include "codec/edm_text.h"
#include "codec/json_scan.h"
#include "model/key.h"
#include "model/limits.h"
#include "model/names.h"

#include <stdlib.h>

#define NAMES_MAX 512
#define SLOTS 2048 /* must be a power of two */
/* A shorter document cannot exceed the limit of an entity: a property counts less than four times
 * its text.  Two keys come on top. */
#define TEXT_MAX (LIMIT_ENTITY_BYTES / 4 - 4 * LIMIT_KEY_BYTES)
/* A decimal number with so few digits is its own shortest form. */
#define DOUBLE_DIGITS 15
/* The longest quoted value with only one valid form: a date or a GUID. */
#define VALUE_MAX 64

enum role {
	ROLE_PROPERTY,
	ROLE_TYPE, /* NAME@odata.type */
	ROLE_PK,
	ROLE_RK,
	ROLE_DROPPED, /* Timestamp and its type */
};

struct cached_name {
	struct span name;
	enum role role;
	uint16_t next; /* the name that followed it last */
	uint32_t row;  /* the last row that had it */
};

struct splicer {
	struct cached_name names[NAMES_MAX]; /* [0] is the start of a row */
	uint16_t slots[SLOTS];               /* index into names; 0: free */
	size_t n;
	uint32_t row;
	struct arena arena; /* owns the names */
};

static const struct span annotation = { "@odata.type", 11 };

static void forget(struct splicer *s)
{
	arena_reset(&s->arena);
	memset(s->slots, 0, sizeof(s->slots));
	s->names[0] = (struct cached_name){ 0 };
	s->n = 1;
	s->row = 0;
}

struct splicer *splicer_new(void)
{
	struct splicer *s = calloc(1, sizeof(*s));

	if (s != NULL)
		forget(s);
	return s;
}

void splicer_free(struct splicer *s)
{
	if (s == NULL)
		return;
	arena_fini(&s->arena);
	free(s);
}

size_t splicer_holds(const struct splicer *s)
{
	return sizeof(*s) + arena_holds(&s->arena);
}

/* ---- names ---- */

static bool role_of(struct span name, enum role *ret)
{
	struct span of = span_make(name.p, name.n - annotation.n);

	if (span_is(name, "PartitionKey"))
		*ret = ROLE_PK;
	else if (span_is(name, "RowKey"))
		*ret = ROLE_RK;
	else if (span_is(name, "Timestamp") || span_is(name, "Timestamp@odata.type"))
		*ret = ROLE_DROPPED;
	else if (!span_ends(name, annotation))
		*ret = ROLE_PROPERTY;
	else if (span_is(of, "PartitionKey") || span_is(of, "RowKey"))
		return false;
	else
		*ret = ROLE_TYPE;
	return property_name_check(*ret == ROLE_TYPE ? of : name, NULL) == ERR_OK ||
		*ret == ROLE_DROPPED;
}

static uint16_t *slot_of(struct splicer *s, struct span name)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < name.n; i++)
		h = (h ^ (unsigned char)name.p[i]) * 16777619u;
	for (h ^= h >> 15;; h++) {
		uint16_t *slot = &s->slots[h % SLOTS];
		if (*slot == 0 || span_eq(s->names[*slot].name, name))
			return slot;
	}
}

/* Returns NULL if the name is invalid or there is no room for it. */
static struct cached_name *learn(struct splicer *s, struct span name, uint16_t *slot)
{
	enum role role;
	struct span copy;

	if (s->n == NAMES_MAX || !role_of(name, &role))
		return NULL;
	copy = arena_copy(&s->arena, name);
	if (copy.p == NULL)
		return NULL;
	*slot = (uint16_t)s->n;
	s->names[s->n] = (struct cached_name){ .name = copy, .role = role };
	return &s->names[s->n++];
}

/* Finds a name behind `last`.  Returns NULL also if the row has it already. */
static struct cached_name *find(struct splicer *s, struct cached_name *last, struct span name)
{
	struct cached_name *k = &s->names[last->next];

	if (last->next == 0 || !span_eq(k->name, name)) {
		uint16_t *slot = slot_of(s, name);
		k = *slot != 0 ? &s->names[*slot] : learn(s, name, slot);
		if (k == NULL)
			return NULL;
		last->next = (uint16_t)(k - s->names);
	}
	if (k->row == s->row)
		return NULL;
	k->row = s->row;
	return k;
}

/* ---- values ---- */

/* Accepts the escapes that the encoder writes.  The scanner has checked that they are complete. */
static bool escapes_are_plain(struct span s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\\' && memchr("\"\\bfnrt", s.p[++i], 7) == NULL)
			return false;
	}
	return true;
}

static bool is_plain_string(const struct json_member *m)
{
	return m->value.n <= LIMIT_STRING_UNITS &&
		(!m->value_escaped || escapes_are_plain(m->value));
}

static bool is_plain_int32(struct span s)
{
	struct value v;

	if (s.p[0] == '-' && s.p[1] == '0')
		return false;
	/* Nine digits always fit. */
	return s.n <= 9 || edm_text_parse(EDM_INT32, s, &v, NULL, NULL) == ERR_OK;
}

/* Returns true if s is what printf("%.15g") writes, with a point.  s has a point or an exponent. */
static bool is_plain_double(struct span s)
{
	size_t minus = s.p[0] == '-', point = minus, zeros = 0;

	while (s.p[point] != '.' && s.p[point] != 'e' && s.p[point] != 'E')
		point++;
	if (s.n - minus > DOUBLE_DIGITS + 1 || s.p[point] != '.')
		return false;
	if (s.p[s.n - 1] == '0')
		return s.n - point == 2; /* "1.0" */
	while (s.p[point + 1 + zeros] == '0')
		zeros++;
	return (zeros < 4 || s.p[minus] != '0') && memchr(s.p, 'e', s.n) == NULL &&
		memchr(s.p, 'E', s.n) == NULL;
}

static bool is_plain(const struct json_member *m)
{
	if (m->token == JSON_TOKEN_STRING)
		return is_plain_string(m);
	if (m->token == JSON_TOKEN_INTEGER)
		return is_plain_int32(m->value);
	/* Only true and false are left. */
	return m->token != JSON_TOKEN_NUMBER || is_plain_double(m->value);
}

/* Accepts a value behind its annotation.  Types that need no annotation do not come here. */
static bool is_plain_typed(enum edm_type type, const struct json_member *m)
{
	char text[VALUE_MAX + 1];
	struct buf out = { .data = text, .cap = sizeof(text), .limit = VALUE_MAX };
	struct value v;

	if (m->token != JSON_TOKEN_STRING || m->value_escaped || m->value.n > VALUE_MAX)
		return false;
	if (type != EDM_INT64 && type != EDM_DATETIME && type != EDM_GUID)
		return false;
	if (edm_text_parse(type, m->value, &v, NULL, NULL) != ERR_OK)
		return false;
	edm_text_format(&v, &out);
	return span_eq(buf_span(&out), m->value);
}

/* ---- rows ---- */

struct row {
	struct splicer *s;
	struct span text;
	struct json_scan scan;
	struct cached_name *last;
	struct arena *to;
	struct spliced *ret;
	size_t properties;
	char *out; /* room for the text and a line end */
	size_t n;
	size_t from, end; /* range of the text to copy; end is 0 if there is none */
};

static void flush(struct row *r)
{
	memcpy(r->out + r->n, r->text.p + r->from, r->end - r->from);
	r->n += r->end - r->from;
	r->end = 0;
}

/* Adds a member: its name with quotes, and the value up to the scanner's position.  White space is
 * dropped. */
static void put(struct row *r, const struct json_member *m)
{
	size_t name_n = m->name.n + 2;

	if (r->end != 0 && m->offset == r->end + 1 && m->value_offset == m->offset + name_n + 1) {
		r->end = r->scan.pos;
		return;
	}
	if (r->end != 0)
		flush(r);
	if (r->n > 1)
		r->out[r->n++] = ',';
	memcpy(r->out + r->n, r->text.p + m->offset, name_n);
	r->n += name_n;
	r->out[r->n++] = ':';
	r->from = m->value_offset;
	r->end = r->scan.pos;
}

static bool take_key(struct row *r, const struct json_member *m, bool pk)
{
	struct span *to = pk ? &r->ret->pk : &r->ret->rk;

	if (m->token != JSON_TOKEN_STRING || m->value_escaped ||
		key_check(m->value, "", NULL) != ERR_OK)
		return false;
	*to = arena_copy(r->to, m->value);
	return to->p != NULL;
}

/* Takes an annotation and the property that must follow it: role_of() accepts no other
 * annotations. */
static bool take_typed(struct row *r, const struct json_member *type, const struct cached_name *k)
{
	struct span name = span_make(k->name.p, k->name.n - annotation.n);
	struct json_member m;
	enum edm_type edm;

	if (type->token != JSON_TOKEN_STRING || type->value_escaped ||
		!edm_from_name(type->value, &edm))
		return false;
	put(r, type);
	if (json_scan_next(&r->scan, r->text, &m) != JSON_SCAN_MEMBER || !span_eq(m.name, name))
		return false;
	r->last = find(r->s, r->last, m.name);
	if (r->last == NULL || !is_plain_typed(edm, &m))
		return false;
	r->properties++;
	put(r, &m);
	return true;
}

static bool take_member(struct row *r, const struct json_member *m)
{
	struct cached_name *k = find(r->s, r->last, m->name);

	if (k == NULL)
		return false;
	r->last = k;
	switch (k->role) {
	case ROLE_PROPERTY:
		if (m->token == JSON_TOKEN_NULL)
			return true;
		if (!is_plain(m))
			return false;
		r->properties++;
		put(r, m);
		return true;
	case ROLE_TYPE:
		return take_typed(r, m, k);
	case ROLE_PK:
	case ROLE_RK:
		return take_key(r, m, k->role == ROLE_PK);
	case ROLE_DROPPED:
		break;
	}
	return true;
}

static bool take_all(struct row *r)
{
	struct json_member m;
	enum json_scan_result found;

	r->out[r->n++] = '{';
	while ((found = json_scan_next(&r->scan, r->text, &m)) == JSON_SCAN_MEMBER) {
		if (!take_member(r, &m))
			return false;
	}
	if (found != JSON_SCAN_END || r->properties > LIMIT_PROPERTIES)
		return false;
	if (r->end != 0)
		flush(r);
	r->out[r->n++] = '}';
	r->out[r->n++] = '\n';
	return true;
}

bool splicer_take(struct splicer *s, struct span text, struct arena *to, struct spliced *ret)
{
	struct row r = { .s = s, .text = text, .to = to, .ret = ret };

	*ret = (struct spliced){ 0 };
	if (text.n > TEXT_MAX)
		return false;
	if (s->n == NAMES_MAX || s->row == UINT32_MAX)
		forget(s);
	s->row++;
	r.last = &s->names[0];
	r.out = arena_alloc(to, text.n + 2);
	if (r.out == NULL || !take_all(&r))
		return false;
	ret->document = span_make(r.out, r.n);
	return true;
}
