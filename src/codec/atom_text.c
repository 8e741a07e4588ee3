/* SPDX-License-Identifier: MIT
 * Every byte of a page passes here.  Room is reserved per piece, plain bytes are copied eight at a
 * time, and JSON strings are not unescaped first. */
#include "codec/atom_text.h"

#include "base/text.h"
#include "codec/xml_controls.h"

#include <stdint.h>

#define PIECE 1024

/* The output for one byte: eight bytes, so that one copy writes it. */
struct spelling {
	char text[6];
	uint8_t rare; /* put_slowly() must handle it */
	uint8_t n;
};

/* clang-format off */
#define ITSELF(c_)  { { (char)(c_) }, 0, 1 }
#define TWO(c_)     ITSELF(c_), ITSELF((c_) + 1)
#define FOUR(c_)    TWO(c_), TWO((c_) + 2)
#define EIGHT(c_)   FOUR(c_), FOUR((c_) + 4)
#define SIXTEEN(c_) EIGHT(c_), EIGHT((c_) + 8)
#define NOTHING     { "", 0, 0 }
#define RARE        { "", 1, 0 }

/* 0xef is the first byte of U+F000 and above. */
#define MARKUP(backslash_) \
	[0x00 ... 0x08] = RARE, ['\t'] = TWO('\t'), [0x0b ... 0x1f] = RARE, \
	[' '] = FOUR(' '), TWO('$'), { "&amp;", 0, 5 }, ITSELF('\''), EIGHT('('), \
	['0'] = EIGHT('0'), FOUR('8'), { "&lt;", 0, 4 }, ITSELF('='), { "&gt;", 0, 4 }, ITSELF('?'), \
	['@'] = SIXTEEN('@'), EIGHT('P'), FOUR('X'), backslash_, ITSELF(']'), TWO('^'), \
	['`'] = SIXTEEN('`'), SIXTEEN('p'), \
	[0x80] = SIXTEEN(0x80), SIXTEEN(0x90), SIXTEEN(0xa0), SIXTEEN(0xb0), \
	[0xc0] = SIXTEEN(0xc0), SIXTEEN(0xd0), \
	[0xe0] = EIGHT(0xe0), FOUR(0xe8), TWO(0xec), ITSELF(0xee), RARE, SIXTEEN(0xf0)
/* clang-format on */

static const struct spelling spellings[][256] = {
	{ MARKUP(ITSELF('\\')) },
	/* In a JSON string, and behind a backslash in it. */
	{ MARKUP(NOTHING) },
	{
		[0x00 ... '!'] = RARE,
		['"'] = ITSELF('"'),
		['#' ... '['] = RARE,
		['\\'] = ITSELF('\\'),
		[']' ... 'm'] = RARE,
		['n'] = ITSELF('\n'),
		['o' ... 's'] = RARE,
		['t'] = ITSELF('\t'),
		['u' ... 0xff] = RARE,
	},
};

typedef uint8_t eight __attribute__((vector_size(8)));

/* A backslash is never plain, even outside of JSON. */
static bool eight_are_plain(const unsigned char *p)
{
	eight v;
	uint64_t found;

	memcpy(&v, p, 8);
	v = (eight)(v < ' ') | (eight)(v == '&') | (eight)(v == '<') | (eight)(v == '>') |
		(eight)(v == '\\') | (eight)(v == 0xef);
	memcpy(&found, &v, 8);
	return found == 0;
}

static char *put(char *to, const char *text, size_t n)
{
	memcpy(to, text, n);
	return to + n;
}

static char *put_reference(char *to, uint32_t cp)
{
	static const char hex[] = "0123456789ABCDEF";

	to = put(to, "&#x", 3);
	if (cp > 0xff)
		to = put(to, "FFF", 3);
	else if (cp > 0xf)
		*to++ = hex[cp >> 4];
	*to++ = hex[cp & 15];
	*to++ = ';';
	return to;
}

/* Handles U+FFFE and U+FFFF, and all other characters that begin with 0xef. */
static char *put_high(char *to, struct span s, size_t *ret_n)
{
	uint32_t cp = 0;

	*ret_n = utf8_decode(s, &cp);
	if (*ret_n > 0 && !xml_can_carry(cp))
		return put_reference(to, cp);
	*ret_n = *ret_n == 0 ? 1 : *ret_n;
	return put(to, s.p, *ret_n);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Handles \u00XX of a control character: documents have no other. */
static char *put_escaped_control(char *to, struct span s, size_t *ret_n)
{
	*ret_n = 6;
	if (s.n < 6 || memcmp(s.p + 2, "00", 2) != 0 || (s.p[4] != '0' && s.p[4] != '1'))
		return NULL;
	int low = hex_digit(s.p[5]);
	return low < 0 ? NULL : put_reference(to, (uint32_t)((s.p[4] - '0') * 16 + low));
}

/* Writes the rare escape at s.  NULL if the encoder does not write such an escape. */
static char *put_escape(char *to, struct span s, size_t *ret_n)
{
	*ret_n = 2;
	switch (s.n < 2 ? '\0' : s.p[1]) {
	case 'r':
		return put_reference(to, '\r');
	case 'b':
		return put_reference(to, '\b');
	case 'f':
		return put_reference(to, '\f');
	case 'u':
		return put_escaped_control(to, s, ret_n);
	default:
		return NULL;
	}
}

/* Writes the byte or escape at s, rare or not. */
static char *put_slowly(char *to, struct span s, size_t *ret_n, bool json)
{
	unsigned char c = (unsigned char)s.p[0];
	size_t escaped = json && c == '\\' && s.n > 1;
	const struct spelling *as = &spellings[json + escaped][(unsigned char)s.p[escaped]];

	*ret_n = 1 + escaped;
	if (as->n > 0)
		return put(to, as->text, as->n);
	if (json && c == '\\')
		return put_escape(to, s, ret_n);
	return c == 0xef ? put_high(to, s, ret_n) : put_reference(to, c);
}

/* Writes n bytes without branches, which the CPU could not predict.  *escaped: a backslash precedes
 * them, and afterwards: a backslash is the last byte.  Returns NULL if a rare byte is among
 * them. */
static inline char *put_bytes(
	char *to, const unsigned char *p, size_t n, bool json, unsigned *escaped)
{
	unsigned behind = *escaped, rare = 0;

	for (size_t i = 0; i < n; i++) {
		const struct spelling *as = &spellings[json + behind][p[i]];
		memcpy(to, as, sizeof(*as));
		to += as->n;
		rare |= as->rare;
		behind = json & (p[i] == '\\') & ~behind;
	}
	*escaped = behind;
	return rare == 0 ? to : NULL;
}

/* Writes from *at on, up to `end` at least, one byte or escape at a time. */
static char *put_rare_bytes(char *to, struct span s, size_t *at, size_t end, bool json)
{
	size_t n;

	for (; *at < end && to != NULL; *at += n)
		to = put_slowly(to, span_make(s.p + *at, s.n - *at), &n, json);
	return to;
}

/* Writes from *at on, up to `end` at least, but does not stop behind a backslash.  `end` can be
 * inside a character. */
static char *put_piece(char *to, struct span s, size_t *at, size_t end, bool json)
{
	const unsigned char *p = (const unsigned char *)s.p;
	unsigned escaped = 0;
	bool plain = false; /* the last eight bytes were plain */
	size_t i, n;

	for (i = *at; i < end && to != NULL; i += n) {
		for (; end - i >= 8 && !escaped && eight_are_plain(p + i); i += 8, to += 8) {
			memcpy(to, p + i, 8);
			plain = true;
		}
		n = end - i < 8 ? end - i : 8;
		if (plain && n < 8 && eight_are_plain(p + end - 8)) {
			memcpy(to + n - 8, p + end - 8, 8);
			to += n;
			continue;
		}
		size_t from = i - escaped;
		char *next = n == 8 ? put_bytes(to, p + i, 8, json, &escaped)
				    : put_bytes(to, p + i, n, json, &escaped);
		plain = false;
		if (next == NULL) {
			next = put_rare_bytes(to, s, &from, i + n, json);
			n = from - i;
			escaped = 0;
		}
		to = next;
	}
	*at = i - escaped;
	return escaped && i == s.n ? NULL : to;
}

char *atom_put_text(char *to, struct span s, bool json)
{
	size_t at = 0;

	return put_piece(to, s, &at, s.n, json);
}

static bool add(struct buf *out, struct span s, bool json)
{
	for (size_t at = 0; at < s.n;) {
		size_t piece = s.n - at < PIECE ? s.n - at : PIECE;
		if (!buf_reserve(out, ATOM_TEXT_ROOM(piece)))
			return true;
		char *end = put_piece(out->data + out->len, s, &at, at + piece, json);
		if (end == NULL)
			return false;
		out->len = (size_t)(end - out->data);
		*end = '\0';
	}
	return true;
}

void atom_add_text(struct buf *out, struct span s)
{
	(void)add(out, s, false);
}

bool atom_add_json_text(struct buf *out, struct span raw)
{
	return add(out, raw, true);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool atom_has_blank_ends(struct span s)
{
	return s.n > 0 && (is_blank(s.p[0]) || is_blank(s.p[s.n - 1]));
}

static bool is_blank_escape(char c)
{
	return c == 'n' || c == 'r' || c == 't';
}

bool atom_json_has_blank_ends(struct span raw)
{
	size_t backslashes = 0;

	if (raw.n == 0)
		return false;
	if (raw.p[0] == ' ' || raw.p[raw.n - 1] == ' ')
		return true;
	if (raw.n > 1 && raw.p[0] == '\\' && is_blank_escape(raw.p[1]))
		return true;
	if (!is_blank_escape(raw.p[raw.n - 1]))
		return false;
	while (backslashes + 1 < raw.n && raw.p[raw.n - 2 - backslashes] == '\\')
		backslashes++;
	return backslashes % 2 == 1;
}
