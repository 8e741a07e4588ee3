/* SPDX-License-Identifier: MIT
 * A damaged document can pass these checks, but no function reads behind its end. */
#include "codec/document_walk.h"

#include "base/text.h"
#include "codec/edm_text.h"
#include "codec/entity_json.h"
#include "codec/json_scan.h"

#include <ctype.h>

static const struct span annotation = { "@odata.type", 11 };

bool document_walk_begin(struct span document, struct document_walk *ret)
{
	struct span members;

	if (!entity_json_members(document, &members))
		return false;
	*ret = (struct document_walk){ members.p, members.p + members.n };
	return true;
}

static size_t left(const struct document_walk *w)
{
	return (size_t)(w->end - w->p);
}

static bool is_escaped(const char *start, const char *quote)
{
	size_t backslashes = 0;

	while (quote - backslashes > start && quote[-1 - (ptrdiff_t)backslashes] == '\\')
		backslashes++;
	return backslashes % 2 != 0;
}

/* The walk is at the opening quote.  Sets *ret to the text between the quotes. */
static bool take_string(struct document_walk *w, struct span *ret)
{
	if (left(w) < 2 || *w->p != '"')
		return false;
	const char *start = ++w->p;
	for (const char *from = start;;) {
		const char *quote = memchr(from, '"', (size_t)(w->end - from));
		if (quote == NULL)
			return false;
		if (!is_escaped(start, quote)) {
			*ret = span_make(start, (size_t)(quote - start));
			w->p = quote + 1;
			return true;
		}
		from = quote + 1;
	}
}

static bool take(struct document_walk *w, char c)
{
	if (left(w) == 0 || *w->p != c)
		return false;
	w->p++;
	return true;
}

static bool take_name(struct document_walk *w, struct span *ret)
{
	return take_string(w, ret) && take(w, ':');
}

static bool take_value(struct document_walk *w, struct document_property *p)
{
	const char *start = w->p;

	if (left(w) > 0 && *start == '"') {
		struct span inside;
		if (!take_string(w, &inside))
			return false;
		p->text = span_make(inside.p - 1, inside.n + 2);
		return true;
	}
	const char *comma = memchr(start, ',', left(w));
	w->p = comma != NULL ? comma : w->end;
	p->text = span_make(start, (size_t)(w->p - start));
	return p->text.n > 0;
}

/* The walk is behind "X@odata.type".  Takes the type and the second X. */
static bool take_type(struct document_walk *w, struct document_property *p)
{
	struct span name = span_make(p->name.p, p->name.n - annotation.n);

	return take_string(w, &p->type) && take(w, ',') && take_name(w, &p->name) &&
		span_eq(p->name, name);
}

/* A value must be followed by the end, or by a comma and more text. */
static bool ends_member(struct document_walk *w)
{
	return left(w) == 0 || (take(w, ',') && left(w) > 0);
}

enum err document_walk_next(struct document_walk *w, struct document_property *ret)
{
	if (left(w) == 0)
		return ERR_NOT_FOUND;
	ret->type = (struct span){ 0 };
	if (!take_name(w, &ret->name))
		return ERR_CORRUPT;
	if (span_ends(ret->name, annotation) && !take_type(w, ret))
		return ERR_CORRUPT;
	if (!take_value(w, ret))
		return ERR_CORRUPT;
	return ends_member(w) ? ERR_OK : ERR_CORRUPT;
}

bool document_walk_behind(struct document_walk *w, struct span before, struct span *ret_text)
{
	const char *from = w->p;
	struct document_property p;

	if (!span_starts(span_make(from, left(w)), before))
		return false;
	w->p += before.n;
	if (take_value(w, &p) && ends_member(w)) {
		*ret_text = p.text;
		return true;
	}
	w->p = from;
	return false;
}

enum err document_gather(struct document_walk *w, struct document_properties *ret)
{
	struct document_property p;
	enum err e;

	ret->n = ret->next = 0;
	while ((e = document_walk_next(w, &p)) == ERR_OK) {
		if (ret->n == LIMIT_PROPERTIES)
			return ERR_CORRUPT;
		ret->all[ret->n++] = p;
	}
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

const struct document_property *document_find(struct document_properties *d, struct span name)
{
	for (size_t i = 0; i < d->n; i++) {
		size_t at = (d->next + i) % d->n;
		if (span_eq(d->all[at].name, name)) {
			d->next = at + 1;
			return &d->all[at];
		}
	}
	return NULL;
}

enum err document_select(struct document_walk *w, const struct span *names, size_t n,
	enum err (*fn)(void *arg, struct document_properties *all, struct span name), void *arg)
{
	struct document_properties all;
	enum err e = document_gather(w, &all);

	for (size_t i = 0; e == ERR_OK && i < n; i++)
		e = fn(arg, &all, names[i]);
	return e;
}

/* Accepts the escapes that buf_add_json() writes. */
static bool escapes_are_whole(struct span s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] != '\\')
			continue;
		if (++i == s.n || memchr("\"\\bfnrtu", s.p[i], 8) == NULL)
			return false;
		if (s.p[i] != 'u')
			continue;
		if (s.n - i < 5 || memcmp(s.p + i, "u00", 3) != 0 ||
			!isxdigit((unsigned char)s.p[i + 3]) ||
			!isxdigit((unsigned char)s.p[i + 4]))
			return false;
		i += 4;
	}
	return true;
}

static enum err string_value(struct span raw, struct arena *arena, struct value *ret)
{
	ret->type = EDM_STRING;
	ret->bytes = raw;
	if (memchr(raw.p, '\\', raw.n) == NULL)
		return ERR_OK;
	if (!escapes_are_whole(raw))
		return ERR_CORRUPT;
	char *p = arena_alloc(arena, raw.n);
	if (p == NULL)
		return ERR_NO_MEMORY;
	ret->bytes = span_make(p, json_unescape(raw, p));
	return ERR_OK;
}

static enum err typed_value(struct span name, struct span text, struct value *ret)
{
	enum edm_type type;

	if (!edm_from_name(name, &type))
		return ERR_CORRUPT;
	if (type == EDM_BINARY)
		return ERR_NOT_SUPPORTED;
	enum err e = edm_text_parse(type, text, ret, NULL, NULL);
	return e == ERR_OK || e == ERR_NO_MEMORY ? e : ERR_CORRUPT;
}

static bool is_integer(struct span s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((s.p[i] < '0' || s.p[i] > '9') && s.p[i] != '-')
			return false;
	return true;
}

enum err document_value(const struct document_property *p, struct arena *arena, struct value *ret)
{
	struct span text = p->text;

	if (text.p[0] == '"') {
		struct span inside = span_make(text.p + 1, text.n - 2);
		return p->type.n > 0 ? typed_value(p->type, inside, ret)
				     : string_value(inside, arena, ret);
	}
	if (p->type.n > 0)
		return ERR_CORRUPT;
	enum edm_type type = EDM_DOUBLE;
	if (text.p[0] == 't' || text.p[0] == 'f')
		type = EDM_BOOLEAN;
	else if (is_integer(text))
		type = EDM_INT32;
	enum err e = edm_text_parse(type, text, ret, NULL, NULL);
	return e == ERR_OK || e == ERR_NO_MEMORY ? e : ERR_CORRUPT;
}
