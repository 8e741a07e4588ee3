/* SPDX-License-Identifier: MIT
 * Percent-encoding and the OData path.  A path is decoded first and parsed then, as the service
 * does: ' and %27 are the same quote. */
#include "codec/uri.h"

#include "base/text.h"

#include <strings.h>

/* For printf's "%.*s". */
static int shown(struct span s)
{
	return s.n < 100 ? (int)s.n : 100;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_alnum(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_one_of(char c, const char *set)
{
	return c != '\0' && strchr(set, c) != NULL;
}

static bool is_encoded(struct span s, bool plus)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '%' || (plus && s.p[i] == '+'))
			return true;
	}
	return false;
}

/* Decodes into out, which has room for s.n bytes.  Returns false at a '%' without two hex digits;
 * *ret_n is then its offset. */
static bool decode_into(struct span s, bool plus, char *out, size_t *ret_n)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (c == '%') {
			int high = s.n - i > 2 ? hex_value(s.p[i + 1]) : -1;
			int low = s.n - i > 2 ? hex_value(s.p[i + 2]) : -1;
			if (high < 0 || low < 0) {
				*ret_n = i;
				return false;
			}
			c = (char)(high << 4 | low);
			i += 2;
		} else if (plus && c == '+') {
			c = ' ';
		}
		out[n++] = c;
	}
	*ret_n = n;
	return true;
}

static enum err decode_copy(
	struct span s, bool plus, struct arena *arena, struct span *ret, struct err_detail *detail)
{
	char *p = arena_alloc(arena, s.n);
	size_t n;

	if (p == NULL)
		return ERR_NO_MEMORY;
	if (!decode_into(s, plus, p, &n))
		return err_set(detail, ERR_INVALID_INPUT,
			"A '%%' is not followed by two hex digits: '%.*s'.",
			shown(span_make(s.p + n, s.n - n)), s.p + n);
	*ret = span_make(p, n);
	return ERR_OK;
}

enum err percent_decode(
	struct span s, bool plus, struct arena *arena, struct span *ret, struct err_detail *detail)
{
	struct span text = s;

	if (is_encoded(s, plus)) {
		enum err e = decode_copy(s, plus, arena, &text, detail);
		if (e != ERR_OK)
			return e;
	}
	if (text.n > 0 && memchr(text.p, '\0', text.n) != NULL)
		return err_set(detail, ERR_INVALID_INPUT, "It contains a NUL character.");
	if (!utf8_valid(text))
		return err_set(detail, ERR_INVALID_INPUT, "It is not valid UTF-8.");
	*ret = text;
	return ERR_OK;
}

static void encode(char c, struct buf *out)
{
	static const char hex[] = "0123456789ABCDEF";
	unsigned char b = (unsigned char)c;

	buf_add(out, (const char[]){ '%', hex[b >> 4], hex[b & 15] }, 3);
}

void percent_encode_key(struct span key, struct buf *out)
{
	for (size_t i = 0; i < key.n; i++) {
		char c = key.p[i];
		if (c == '\'')
			buf_add(out, "''", 2);
		else if (is_alnum(c) || is_one_of(c, "-._~!$&()*+,;=:@"))
			buf_add_char(out, c);
		else
			encode(c, out);
	}
}

void percent_encode_value(struct span value, struct buf *out)
{
	for (size_t i = 0; i < value.n; i++) {
		if (is_alnum(value.p[i]) || is_one_of(value.p[i], "-._~"))
			buf_add_char(out, value.p[i]);
		else
			encode(value.p[i], out);
	}
}

/* Takes the text before the first c, and c itself; or all of s. */
static struct span cut(struct span *s, char c)
{
	const char *at = s->n == 0 ? NULL : memchr(s->p, c, s->n);
	size_t n = at == NULL ? s->n : (size_t)(at - s->p);
	size_t skip = at == NULL ? n : n + 1;
	struct span head = { s->p, n };

	*s = s->n == 0 ? *s : span_make(s->p + skip, s->n - skip);
	return head;
}

/* Returns the length of "http://" or "https://" at the start, or 0. */
static size_t scheme_length(struct span target)
{
	if (target.n >= 8 && strncasecmp(target.p, "https://", 8) == 0)
		return 8;
	return target.n >= 7 && strncasecmp(target.p, "http://", 7) == 0 ? 7 : 0;
}

static size_t host_length(struct span s)
{
	size_t n = 0;

	while (n < s.n && s.p[n] != '/' && s.p[n] != '?')
		n++;
	return n;
}

void url_split(struct span target, struct url_parts *ret)
{
	size_t scheme = scheme_length(target);
	struct span rest = span_make(target.p + scheme, target.n - scheme);

	*ret = (struct url_parts){ 0 };
	if (scheme > 0) {
		ret->host = span_make(rest.p, host_length(rest));
		rest = span_make(rest.p + ret->host.n, rest.n - ret->host.n);
	}
	ret->path = cut(&rest, '?');
	ret->query = rest;
	if (scheme > 0 && ret->path.n == 0)
		ret->path = SPAN_LIT("/");
}

static size_t count_params(struct span query)
{
	size_t n = 0;

	while (query.n > 0)
		n += cut(&query, '&').n > 0;
	return n;
}

enum err query_params_parse(
	struct span query, struct arena *arena, struct query_params *ret, struct err_detail *detail)
{
	size_t n = count_params(query);
	struct query_param *all = arena_alloc(arena, n * sizeof(*all));

	*ret = (struct query_params){ 0 };
	if (all == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; query.n > 0;) {
		struct span value = cut(&query, '&');
		if (value.n == 0)
			continue; /* "a=1&&b=2" */
		struct span name = cut(&value, '=');
		enum err e = percent_decode(name, true, arena, &all[i].name, detail);
		if (e == ERR_OK)
			e = percent_decode(value, true, arena, &all[i].value, detail);
		if (e != ERR_OK)
			return e;
		i++;
	}
	*ret = (struct query_params){ all, n };
	return ERR_OK;
}

bool query_params_find(const struct query_params *p, const char *name, struct span *ret)
{
	for (size_t i = 0; i < p->n; i++) {
		if (span_is(p->all[i].name, name)) {
			*ret = p->all[i].value;
			return true;
		}
	}
	return false;
}

size_t query_params_count(const struct query_params *p, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += span_is(p->all[i].name, name);
	return n;
}

/* Reads a decoded path. */
struct reader {
	struct span rest;
	struct arena *arena;
};

static enum err bad_path(struct err_detail *detail)
{
	return err_set(detail, ERR_INVALID_INPUT, "Bad Request - Error in query syntax.");
}

static void advance(struct reader *r, size_t n)
{
	r->rest = span_make(r->rest.p + n, r->rest.n - n);
}

static void skip_blanks(struct reader *r)
{
	while (r->rest.n > 0 && r->rest.p[0] == ' ')
		advance(r, 1);
}

/* Takes the character c, after blanks. */
static bool take(struct reader *r, char c)
{
	skip_blanks(r);
	if (r->rest.n == 0 || r->rest.p[0] != c)
		return false;
	advance(r, 1);
	return true;
}

static struct span take_name(struct reader *r)
{
	size_t n = 0;

	skip_blanks(r);
	while (n < r->rest.n && (is_alnum(r->rest.p[n]) || !is_one_of(r->rest.p[n], "/()=,' ")))
		n++;
	struct span name = { r->rest.p, n };
	advance(r, n);
	return name;
}

/* s begins behind the opening quote.  Returns the length up to the closing quote, and counts the
 * doubled quotes.  False if the closing quote is missing. */
static bool measure_literal(struct span s, size_t *ret_n, size_t *ret_doubled)
{
	*ret_doubled = 0;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] != '\'')
			continue;
		if (i + 1 == s.n || s.p[i + 1] != '\'') {
			*ret_n = i;
			return true;
		}
		++*ret_doubled;
		i++;
	}
	return false;
}

static enum err undouble(struct reader *r, struct span raw, size_t doubled, struct span *ret)
{
	char *p = arena_alloc(r->arena, raw.n - doubled);
	size_t n = 0;

	if (p == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < raw.n; i++) {
		p[n++] = raw.p[i];
		if (raw.p[i] == '\'')
			i++;
	}
	*ret = span_make(p, n);
	return ERR_OK;
}

static enum err take_literal(struct reader *r, struct span *ret, struct err_detail *detail)
{
	size_t n, doubled;

	if (!take(r, '\'') || !measure_literal(r->rest, &n, &doubled))
		return bad_path(detail);
	*ret = span_make(r->rest.p, n);
	advance(r, n + 1);
	return doubled == 0 ? ERR_OK : undouble(r, *ret, doubled, ret);
}

/* Reads the rest of Tables('t').  OData also allows the name of the key. */
static enum err read_table_key(struct reader *r, struct resource *ret, struct err_detail *detail)
{
	struct span name = take_name(r);

	if (name.n > 0 && (!span_is(name, "TableName") || !take(r, '=')))
		return bad_path(detail);
	ret->kind = RESOURCE_TABLE;
	return take_literal(r, &ret->table, detail);
}

/* Reads the rest of t(PartitionKey='p',RowKey='r'), in either order. */
static enum err read_entity_keys(struct reader *r, struct resource *ret, struct err_detail *detail)
{
	ret->kind = RESOURCE_ENTITY;
	for (int i = 0; i < 2; i++) {
		if (i > 0 && !take(r, ','))
			return bad_path(detail);
		struct span name = take_name(r);
		bool pk = span_is(name, "PartitionKey");
		struct span *key = pk ? &ret->pk : &ret->rk;
		if ((!pk && !span_is(name, "RowKey")) || key->p != NULL || !take(r, '='))
			return bad_path(detail);
		enum err e = take_literal(r, key, detail);
		if (e != ERR_OK)
			return e;
	}
	return ERR_OK;
}

static enum err read_set(
	struct reader *r, struct span name, struct resource *ret, struct err_detail *detail)
{
	bool tables = span_is(name, "Tables");
	enum err e = ERR_OK;

	ret->kind = tables ? RESOURCE_TABLES : RESOURCE_ENTITIES;
	if (!tables)
		ret->table = name;
	if (!take(r, '('))
		return ERR_OK;
	if (take(r, ')'))
		return ERR_OK;
	e = tables ? read_table_key(r, ret, detail) : read_entity_keys(r, ret, detail);
	if (e != ERR_OK)
		return e;
	return take(r, ')') ? ERR_OK : bad_path(detail);
}

static enum err read_path(struct reader *r, struct resource *ret, struct err_detail *detail)
{
	struct span name;
	enum err e = ERR_OK;

	if (r->rest.n == 0)
		return ERR_OK; /* the path of the service */
	name = take_name(r);
	if (name.n == 0)
		return bad_path(detail);
	if (span_is(name, "$batch"))
		ret->kind = RESOURCE_BATCH;
	else if (span_is(name, "$metadata"))
		ret->kind = RESOURCE_METADATA;
	else
		e = read_set(r, name, ret, detail);
	if (e != ERR_OK)
		return e;
	(void)take(r, '/'); /* "Tables/" is accepted */
	return r->rest.n == 0 ? ERR_OK : bad_path(detail);
}

enum err resource_parse(
	struct span path, struct arena *arena, struct resource *ret, struct err_detail *detail)
{
	struct reader r = { .arena = arena };
	enum err e;

	*ret = (struct resource){ .kind = RESOURCE_SERVICE };
	while (path.n > 0 && path.p[0] == '/')
		path = span_make(path.p + 1, path.n - 1);
	e = percent_decode(path, false, arena, &r.rest, detail);
	return e == ERR_OK ? read_path(&r, ret, detail) : e;
}
