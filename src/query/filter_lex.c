/* SPDX-License-Identifier: MIT
 * The lexer first cuts a token at blanks and parentheses outside of quotes, then interprets it.  A
 * doubled quote needs no special case: it closes and opens again. */
#include "query/filter_lex.h"

#include "base/text.h"
#include "codec/edm_text.h"
#include "model/names.h"

#include <math.h>

/* The value of all datetime literals before 1601.  No row has such a time, so they compare
 * alike. */
#define TICKS_BEFORE_ALL INT64_C(-1)

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t cut(struct span s, size_t i)
{
	bool quoted = false;

	for (; i < s.n; i++) {
		if (s.p[i] == '\'')
			quoted = !quoted;
		else if (!quoted && (is_blank(s.p[i]) || s.p[i] == '(' || s.p[i] == ')'))
			break;
	}
	return i;
}

static struct span behind(struct span s, size_t n)
{
	return span_make(s.p + n, s.n - n);
}

static enum err take_value(struct filter_token *t, enum err e)
{
	t->kind = e == ERR_OK ? FILTER_TOKEN_LITERAL : FILTER_TOKEN_BAD;
	return e == ERR_NO_MEMORY ? e : ERR_OK;
}

/* text is without the outer quotes.  Inner quotes must be doubled. */
static enum err lex_string(struct arena *arena, struct span text, struct value *ret)
{
	char *p = arena_alloc(arena, text.n);
	size_t n = 0;

	if (p == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\'' && (++i == text.n || text.p[i] != '\''))
			return ERR_VALUE_INVALID;
		p[n++] = text.p[i];
	}
	*ret = (struct value){ .type = EDM_STRING, .bytes = { p, n } };
	return ERR_OK;
}

/* Restores the '+' of an offset, which a careless decoding of the query string turns into a
 * space. */
static enum err mend_offset(struct arena *arena, struct span *text)
{
	static const size_t offset = sizeof("+hh:mm") - 1;
	size_t sign = text->n - offset;
	char *p;

	if (text->n < offset || text->p[sign] != ' ')
		return ERR_OK;
	p = arena_alloc(arena, text->n);
	if (p == NULL)
		return ERR_NO_MEMORY;
	memcpy(p, text->p, text->n);
	p[sign] = '+';
	*text = span_make(p, text->n);
	return ERR_OK;
}

static enum err lex_datetime(struct arena *arena, struct span text, struct value *ret)
{
	enum err e = mend_offset(arena, &text);

	if (e != ERR_OK)
		return e;
	e = edm_text_parse(EDM_DATETIME, text, ret, NULL, NULL);
	if (e != ERR_OUT_OF_RANGE || text.p[0] == '9')
		return e;
	*ret = (struct value){ .type = EDM_DATETIME, .ticks = TICKS_BEFORE_ALL };
	return ERR_OK;
}

/* Accepts the form with dashes only. */
static enum err lex_guid(struct arena *arena, struct span text, struct value *ret)
{
	return text.n == 36 ? edm_text_parse(EDM_GUID, text, ret, NULL, NULL) : ERR_VALUE_INVALID;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static enum err lex_binary(struct arena *arena, struct span text, struct value *ret)
{
	char *p;

	if (text.n % 2 != 0)
		return ERR_VALUE_INVALID;
	p = arena_alloc(arena, text.n / 2);
	if (p == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < text.n; i += 2) {
		int high = hex_value(text.p[i]), low = hex_value(text.p[i + 1]);
		if (high < 0 || low < 0)
			return ERR_VALUE_INVALID;
		p[i / 2] = (char)(high << 4 | low);
	}
	*ret = (struct value){ .type = EDM_BINARY, .bytes = { p, text.n / 2 } };
	return ERR_OK;
}

static const struct {
	const char *prefix;
	enum err (*lex)(struct arena *arena, struct span text, struct value *ret);
} quoted[] = {
	{ "", lex_string },
	{ "datetime", lex_datetime },
	{ "guid", lex_guid },
	{ "X", lex_binary },
	{ "x", lex_binary },
	{ "binary", lex_binary },
};

/* Reads PREFIX'...'; the first quote is at `quote`. */
static enum err lex_quoted(struct arena *arena, struct span s, size_t quote, struct value *ret)
{
	struct span prefix = span_make(s.p, quote);

	if (s.n < quote + 2 || s.p[s.n - 1] != '\'')
		return ERR_VALUE_INVALID;
	for (size_t i = 0; i < ARRAY_LEN(quoted); i++) {
		if (span_is(prefix, quoted[i].prefix))
			return quoted[i].lex(
				arena, span_make(s.p + quote + 1, s.n - quote - 2), ret);
	}
	return ERR_VALUE_INVALID;
}

/* Returns where the fraction and the exponent end; i is behind the integer part.  0 if they are
 * malformed. */
static size_t scan_real(struct span s, size_t i)
{
	size_t n;

	if (i < s.n && s.p[i] == '.') {
		n = text_count_digits(s, i + 1);
		if (n == 0)
			return 0;
		i += 1 + n;
	}
	if (i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
		i++;
		i += i < s.n && (s.p[i] == '-' || s.p[i] == '+');
		n = text_count_digits(s, i);
		if (n == 0)
			return 0;
		i += n;
	}
	return i;
}

/* Takes the first type that can hold the value: Int32, Int64, Double. */
static enum err lex_integer(struct span s, struct value *ret)
{
	int64_t v;

	if (!text_to_i64(s, &v))
		return edm_text_parse(EDM_DOUBLE, s, ret, NULL, NULL);
	if (v >= INT32_MIN && v <= INT32_MAX)
		*ret = (struct value){ .type = EDM_INT32, .int32 = (int32_t)v };
	else
		*ret = (struct value){ .type = EDM_INT64, .int64 = v };
	return ERR_OK;
}

static enum err lex_number(struct span s, struct value *ret)
{
	size_t minus = s.p[0] == '-';
	size_t integer = minus + text_count_digits(s, minus);
	size_t end = integer == minus ? 0 : scan_real(s, integer);
	struct span body = span_make(s.p, end);
	struct span suffix = behind(s, end);

	if (end == 0)
		return ERR_VALUE_INVALID;
	if (suffix.n == 0 && end == integer)
		return lex_integer(body, ret);
	if (suffix.n == 0 || span_is(suffix, "D") || span_is(suffix, "d"))
		return edm_text_parse(EDM_DOUBLE, body, ret, NULL, NULL);
	if (end == integer && (span_is(suffix, "L") || span_is(suffix, "l")))
		return edm_text_parse(EDM_INT64, body, ret, NULL, NULL);
	return ERR_VALUE_INVALID;
}

static bool is_constant(struct span s, struct value *ret)
{
	bool minus = s.p[0] == '-';
	struct span name = behind(s, minus);

	if (span_is(name, "INF") || span_is(name, "Infinity"))
		*ret = (struct value){ .type = EDM_DOUBLE,
			.dbl = minus ? -(double)INFINITY : (double)INFINITY };
	else if (span_is(s, "NaN"))
		*ret = (struct value){ .type = EDM_DOUBLE, .dbl = (double)NAN };
	else if (span_is(s, "true") || span_is(s, "True"))
		*ret = (struct value){ .type = EDM_BOOLEAN, .boolean = true };
	else if (span_is(s, "false") || span_is(s, "False"))
		*ret = (struct value){ .type = EDM_BOOLEAN };
	else
		return false;
	return true;
}

/* t->text must be set and not empty. */
static enum err understand(struct arena *arena, struct filter_token *t)
{
	struct span s = t->text;
	const char *quote = memchr(s.p, '\'', s.n);

	if (quote != NULL)
		return take_value(t, lex_quoted(arena, s, (size_t)(quote - s.p), &t->value));
	if (is_constant(s, &t->value)) {
		t->kind = FILTER_TOKEN_LITERAL;
		return ERR_OK;
	}
	if (s.p[0] == '-' || text_count_digits(s, 0) > 0)
		return take_value(t, lex_number(s, &t->value));
	if (span_is(s, "null"))
		t->kind = FILTER_TOKEN_NULL;
	else if (property_name_check(s, NULL) == ERR_OK)
		t->kind = FILTER_TOKEN_WORD;
	else
		t->kind = FILTER_TOKEN_BAD;
	return ERR_OK;
}

enum err filter_lex_next(struct filter_lexer *l, struct filter_token *ret)
{
	struct span s = l->text;
	size_t start = l->pos;

	while (start < s.n && is_blank(s.p[start]))
		start++;
	l->pos = cut(s, start);
	*ret = (struct filter_token){ .end = l->pos };
	if (start == s.n)
		return ERR_OK;
	if (l->pos == start) { /* the token is a parenthesis */
		l->pos = ret->end = start + 1;
		ret->kind = s.p[start] == '(' ? FILTER_TOKEN_OPEN : FILTER_TOKEN_CLOSE;
	}
	ret->text = span_make(s.p + start, l->pos - start);
	return ret->kind == FILTER_TOKEN_END ? understand(l->arena, ret) : ERR_OK;
}
