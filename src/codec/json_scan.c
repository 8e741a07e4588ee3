/* SPDX-License-Identifier: MIT
 * Each helper moves a cursor.  It reports success, the end of the text, or a byte that no valid
 * document has at this position.  The only state between calls is the end of the last complete
 * member: an incomplete member is read again. */
#include "codec/json_scan.h"

#include "base/compiler.h"
#include "base/text.h"

#include <stdint.h>

enum phase {
	PHASE_START,
	PHASE_FIRST,
	PHASE_NEXT,
	PHASE_DONE,
	PHASE_BAD
};

enum step {
	STEP_OK,
	STEP_MORE,
	STEP_BAD
};

struct cursor {
	const unsigned char *p;
	size_t i, n;
	const char *why; /* with STEP_BAD, describes the byte at i */
	bool objects;
};

static enum step bad(struct cursor *c, const char *why)
{
	c->why = why;
	return STEP_BAD;
}

static enum step skip_space(struct cursor *c)
{
	while (c->i < c->n) {
		unsigned char b = c->p[c->i];
		if (b != ' ' && b != '\n' && b != '\t' && b != '\r')
			return STEP_OK;
		c->i++;
	}
	return STEP_MORE;
}

static enum step expect(struct cursor *c, unsigned char b, const char *why)
{
	if (c->i == c->n)
		return STEP_MORE;
	if (c->p[c->i] != b)
		return bad(c, why);
	c->i++;
	return STEP_OK;
}

#define ONES UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

static uint64_t has_zero_byte(uint64_t w)
{
	return (w - ONES) & ~w & HIGHS;
}

/* Returns true if one of eight bytes is a quote, a backslash, a control character or not ASCII. */
static bool has_special(uint64_t w)
{
	uint64_t low = (w - ONES * 0x20) & ~w & HIGHS;

	return (low | (w & HIGHS) | has_zero_byte(w ^ ONES * '"') |
		       has_zero_byte(w ^ ONES * '\\')) != 0;
}

static void skip_plain(struct cursor *c)
{
	uint64_t w;

	while (c->n - c->i >= sizeof(w)) {
		memcpy(&w, c->p + c->i, sizeof(w));
		if (has_special(w))
			break;
		c->i += sizeof(w);
	}
	while (c->i < c->n) {
		unsigned char b = c->p[c->i];
		if (b < 0x20 || b == '"' || b == '\\' || b >= 0x80)
			return;
		c->i++;
	}
}

/* The range of the byte behind a lead byte. */
static void tail_range(unsigned char lead, unsigned char *ret_min, unsigned char *ret_max)
{
	*ret_min = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
	*ret_max = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
}

/* Takes one non-ASCII character.  On an error c->i is at the wrong byte. */
static enum step take_utf8(struct cursor *c)
{
	static const char why[] = "a string must be valid UTF-8";
	unsigned char lead = c->p[c->i], min, max;
	int tails = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;

	if (lead < 0xc2 || lead > 0xf4)
		return bad(c, why);
	tail_range(lead, &min, &max);
	for (c->i++; tails > 0; tails--, c->i++) {
		if (c->i == c->n)
			return STEP_MORE;
		if (c->p[c->i] < min || c->p[c->i] > max)
			return bad(c, why);
		min = 0x80;
		max = 0xbf;
	}
	return STEP_OK;
}

static int hex_value(unsigned char b)
{
	if (b >= '0' && b <= '9')
		return b - '0';
	b |= 0x20;
	return b >= 'a' && b <= 'f' ? b - 'a' + 10 : -1;
}

/* Takes the four digits of \uXXXX.  low: they must be the second half of a surrogate pair, DC00 to
 * DFFF; else they must not be.  The first two digits tell. */
static enum step take_hex4(struct cursor *c, bool low, unsigned *ret)
{
	static const char unpaired[] = "a surrogate escape must be one of a pair";
	unsigned v = 0;

	for (int k = 0; k < 4; k++, c->i++) {
		if (c->i == c->n)
			return STEP_MORE;
		int d = hex_value(c->p[c->i]);
		if (d < 0)
			return bad(c, "expected four hex digits after \\u");
		v = v << 4 | (unsigned)d;
		if (low && ((k == 0 && v != 0xd) || (k == 1 && v < 0xdc)))
			return bad(c, unpaired);
		if (!low && k == 1 && v >= 0xdc && v <= 0xdf)
			return bad(c, unpaired);
	}
	*ret = v;
	return STEP_OK;
}

static enum step take_unicode(struct cursor *c)
{
	static const char why[] = "the second half of a surrogate pair must follow";
	unsigned unit;
	enum step s = take_hex4(c, false, &unit);

	if (s != STEP_OK || unit < 0xd800 || unit > 0xdbff)
		return s;
	s = expect(c, '\\', why);
	if (s == STEP_OK)
		s = expect(c, 'u', why);
	return s == STEP_OK ? take_hex4(c, true, &unit) : s;
}

/* The cursor is at the backslash. */
static enum step take_escape(struct cursor *c)
{
	c->i++;
	if (c->i == c->n)
		return STEP_MORE;
	switch (c->p[c->i]) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		c->i++;
		return STEP_OK;
	case 'u':
		c->i++;
		return take_unicode(c);
	default:
		return bad(c, "unknown escape");
	}
}

/* The cursor is at the opening quote. */
static enum step take_string(struct cursor *c, struct span *ret, bool *ret_escaped)
{
	size_t start = ++c->i;
	enum step s = STEP_OK;

	*ret_escaped = false;
	while (s == STEP_OK) {
		skip_plain(c);
		if (c->i == c->n)
			return STEP_MORE;
		unsigned char b = c->p[c->i];
		if (b == '"') {
			*ret = span_make(c->p + start, c->i - start);
			c->i++;
			return STEP_OK;
		}
		if (b == '\\') {
			*ret_escaped = true;
			s = take_escape(c);
		} else if (b < 0x20) {
			s = bad(c, "a control character in a string must be escaped");
		} else {
			s = take_utf8(c);
		}
	}
	return s;
}

static bool at_digit(const struct cursor *c)
{
	return c->i < c->n && c->p[c->i] >= '0' && c->p[c->i] <= '9';
}

static enum step take_digits(struct cursor *c)
{
	if (c->i == c->n)
		return STEP_MORE;
	if (!at_digit(c))
		return bad(c, "expected a digit");
	while (at_digit(c))
		c->i++;
	return STEP_OK;
}

static bool take_if(struct cursor *c, unsigned char a, unsigned char b)
{
	if (c->i == c->n || (c->p[c->i] != a && c->p[c->i] != b))
		return false;
	c->i++;
	return true;
}

/* Checks that the number ends here.  At the end of the text more digits may come. */
static enum step end_number(struct cursor *c)
{
	unsigned char b;

	if (c->i == c->n)
		return STEP_MORE;
	b = c->p[c->i];
	if (b == ',' || b == '}' || b == ' ' || b == '\n' || b == '\t' || b == '\r')
		return STEP_OK;
	return bad(c, at_digit(c) ? "a number must not begin with 0" : "not part of a number");
}

static enum step take_number(struct cursor *c, struct json_member *m)
{
	enum step s = STEP_OK;

	m->token = JSON_TOKEN_INTEGER;
	take_if(c, '-', '-');
	if (!take_if(c, '0', '0'))
		s = take_digits(c);
	if (s == STEP_OK && take_if(c, '.', '.')) {
		m->token = JSON_TOKEN_NUMBER;
		s = take_digits(c);
	}
	if (s == STEP_OK && take_if(c, 'e', 'E')) {
		m->token = JSON_TOKEN_NUMBER;
		take_if(c, '+', '-');
		s = take_digits(c);
	}
	return s == STEP_OK ? end_number(c) : s;
}

static enum step take_word(
	struct cursor *c, struct json_member *m, const char *word, enum json_token token)
{
	enum step s = STEP_OK;

	m->token = token;
	for (; s == STEP_OK && *word != '\0'; word++)
		s = expect(c, (unsigned char)*word, "expected true, false or null");
	return s;
}

/* The cursor is at the opening brace. */
static enum step take_object(struct cursor *c, struct json_member *m)
{
	struct json_scan inner = { .pos = c->i, .part = true };
	struct json_member ignored;
	enum json_scan_result r;

	m->token = JSON_TOKEN_OBJECT;
	do
		r = json_scan_next(&inner, span_make(c->p, c->n), &ignored);
	while (r == JSON_SCAN_MEMBER);
	c->i = r == JSON_SCAN_BAD ? inner.bad_at : inner.pos;
	if (r == JSON_SCAN_BAD)
		return bad(c, inner.why);
	return r == JSON_SCAN_END ? STEP_OK : STEP_MORE;
}

static enum step take_literal(struct cursor *c, struct json_member *m)
{
	if (c->objects && c->p[c->i] == '{')
		return take_object(c, m);
	switch (c->p[c->i]) {
	case 't':
		return take_word(c, m, "true", JSON_TOKEN_TRUE);
	case 'f':
		return take_word(c, m, "false", JSON_TOKEN_FALSE);
	case 'n':
		return take_word(c, m, "null", JSON_TOKEN_NULL);
	case '{':
	case '[':
		return bad(c, "a property value cannot be an object or array");
	default:
		if (c->p[c->i] == '-' || at_digit(c))
			return take_number(c, m);
		return bad(c, "expected a value");
	}
}

static enum step take_value(struct cursor *c, struct json_member *m)
{
	enum step s;

	m->value_offset = c->i;
	if (c->p[c->i] == '"') {
		m->token = JSON_TOKEN_STRING;
		return take_string(c, &m->value, &m->value_escaped);
	}
	m->value_escaped = false;
	s = take_literal(c, m);
	m->value = span_make(c->p + m->value_offset, c->i - m->value_offset);
	return s;
}

/* The cursor is at the opening quote of the name. */
static enum step take_member(struct cursor *c, struct json_member *m)
{
	enum step s;

	m->offset = c->i;
	s = take_string(c, &m->name, &m->name_escaped);
	if (s == STEP_OK)
		s = skip_space(c);
	if (s == STEP_OK)
		s = expect(c, ':', "expected : after a property name");
	if (s == STEP_OK)
		s = skip_space(c);
	return s == STEP_OK ? take_value(c, m) : s;
}

static enum json_scan_result finish(struct json_scan *s, struct cursor *c, enum step step)
{
	if (step == STEP_MORE)
		return JSON_SCAN_MORE;
	s->phase = PHASE_BAD;
	s->bad_at = c->i;
	s->why = c->why;
	return JSON_SCAN_BAD;
}

static enum json_scan_result scan_end(struct json_scan *s, struct cursor *c)
{
	enum step step = s->part ? STEP_MORE : skip_space(c);

	s->pos = c->i;
	if (step == STEP_MORE)
		return JSON_SCAN_END;
	return finish(s, c, bad(c, "only white space may follow the object"));
}

static enum step scan_open(struct json_scan *s, struct cursor *c)
{
	enum step step = skip_space(c);

	if (step == STEP_OK)
		step = expect(c, '{', "a row is one JSON object: expected {");
	if (step == STEP_OK)
		s->phase = PHASE_FIRST;
	if (step != STEP_BAD)
		s->pos = c->i;
	return step;
}

/* Moves to the opening quote of the next name.  Behind the closing brace the phase is
 * PHASE_DONE. */
static enum step scan_separator(struct json_scan *s, struct cursor *c)
{
	bool first = s->phase == PHASE_FIRST;
	enum step step = skip_space(c);

	if (step != STEP_OK)
		return step;
	if (c->p[c->i] == '}') {
		c->i++;
		s->phase = PHASE_DONE;
		return STEP_OK;
	}
	if (!first) {
		step = expect(c, ',', "expected , or }");
		if (step == STEP_OK)
			step = skip_space(c);
	}
	if (step == STEP_OK && c->p[c->i] != '"')
		step = bad(c,
			first ? "expected a property name in quotes or }"
			      : "expected a property name in quotes");
	return step;
}

enum json_scan_result json_scan_next(struct json_scan *s, struct span text, struct json_member *ret)
{
	struct cursor c = { (const unsigned char *)text.p, s->pos, text.n, NULL, s->objects };
	enum step step = STEP_OK;

	if (s->phase == PHASE_BAD)
		return JSON_SCAN_BAD;
	if (s->phase == PHASE_START)
		step = scan_open(s, &c);
	if (step == STEP_OK && s->phase != PHASE_DONE)
		step = scan_separator(s, &c);
	if (step != STEP_OK)
		return finish(s, &c, step);
	if (s->phase == PHASE_DONE)
		return scan_end(s, &c);
	step = take_member(&c, ret);
	if (step != STEP_OK)
		return finish(s, &c, step);
	s->phase = PHASE_NEXT;
	s->pos = c.i;
	return JSON_SCAN_MEMBER;
}

static uint32_t unit_at(const char *p)
{
	uint32_t v = 0;

	for (int k = 0; k < 4; k++)
		v = v << 4 | (uint32_t)hex_value((unsigned char)p[k]);
	return v;
}

/* p is behind "\u"; *ret_used counts from p. */
static uint32_t code_point_at(const char *p, size_t *ret_used)
{
	uint32_t high = unit_at(p);

	*ret_used = 4;
	if (high < 0xd800 || high > 0xdbff)
		return high;
	*ret_used = 10; /* XXXX\uXXXX */
	return 0x10000 + ((high - 0xd800) << 10) + (unit_at(p + 6) - 0xdc00);
}

static char simple_escape(char c)
{
	switch (c) {
	case 'b':
		return '\b';
	case 'f':
		return '\f';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	default:
		return c;
	}
}

size_t json_unescape(struct span raw, char *out)
{
	size_t len = 0;

	for (size_t i = 0; i < raw.n; i++) {
		if (raw.p[i] != '\\') {
			out[len++] = raw.p[i];
			continue;
		}
		i++;
		if (raw.p[i] == 'u') {
			size_t used;
			len += utf8_write(code_point_at(raw.p + i + 1, &used), out + len);
			i += used;
		} else {
			out[len++] = simple_escape(raw.p[i]);
		}
	}
	return len;
}
