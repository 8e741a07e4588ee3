/* SPDX-License-Identifier: MIT
 * Every byte of a page passes through here: room is made for a piece at once, plain bytes go
 * eight at a time, and a string of a document is never unescaped before. */
#include "codec/atom_text.h"

#include "base/text.h"
#include "codec/xml_controls.h"

#include <stdint.h>

#define PIECE 1024

/* What becomes of a byte, or of the letter behind a backslash. */
enum kind {
	PLAIN, /* itself */
	AMP,
	LESS,
	GREATER,
	LINE_FEED,
	TAB,
	RARE, /* by put_rare() */
};

/* 0xef: the first byte of U+F000 and above. */
#define MARKUP \
	[0x00 ... 0x08] = RARE, [0x0b ... 0x1f] = RARE, ['&'] = AMP, ['<'] = LESS, \
		  ['>'] = GREATER, [0xef] = RARE

static const uint8_t kinds[][256] = {
	{ MARKUP },
	/* In a document, and behind a backslash there. */
	{ MARKUP, ['\\'] = RARE },
	{
		[0x00 ... '!'] = RARE,
		['#' ... '['] = RARE,
		[']' ... 'm'] = RARE,
		['n'] = LINE_FEED,
		['o' ... 's'] = RARE,
		['t'] = TAB,
		['u' ... 0xff] = RARE,
	},
};

/* Eight bytes, so that one is copied at once, whatever it is. */
struct spelling {
	char text[6];
	uint8_t keep; /* 0xff: the byte itself stands in text[0] */
	uint8_t n;
};

static const struct spelling spellings[] = {
	[PLAIN] = { "", 0xff, 1 },
	[AMP] = { "&amp;", 0, 5 },
	[LESS] = { "&lt;", 0, 4 },
	[GREATER] = { "&gt;", 0, 4 },
	[LINE_FEED] = { "\n", 0, 1 },
	[TAB] = { "\t", 0, 1 },
};

/* A backslash is none here, also where it means nothing. */
static bool eight_are_plain(const unsigned char *p)
{
	const uint8_t *kind = kinds[1];

	return (kind[p[0]] | kind[p[1]] | kind[p[2]] | kind[p[3]] | kind[p[4]] | kind[p[5]] |
		       kind[p[6]] | kind[p[7]]) == PLAIN;
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

/* U+FFFE and U+FFFF, or whatever else begins with 0xef. */
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

/* \u00XX of a control: no other is written. */
static char *put_escaped_control(char *to, struct span s, size_t *ret_n)
{
	*ret_n = 6;
	if (s.n < 6 || memcmp(s.p + 2, "00", 2) != 0 || (s.p[4] != '0' && s.p[4] != '1'))
		return NULL;
	int low = hex_digit(s.p[5]);
	return low < 0 ? NULL : put_reference(to, (uint32_t)((s.p[4] - '0') * 16 + low));
}

/* The escape that s begins with, of those that are rare; NULL if it is none that is written. */
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

static char *put_rare(char *to, struct span s, size_t *ret_n)
{
	unsigned char c = (unsigned char)s.p[0];

	if (c == '\\')
		return put_escape(to, s, ret_n);
	if (c == 0xef)
		return put_high(to, s, ret_n);
	*ret_n = 1;
	return put_reference(to, c);
}

/* The byte or escape at s, which is not plain: without a branch but for what is rare, for nobody
 * can foretell which one comes next. */
static inline char *put_special(char *to, struct span s, size_t *ret_n, bool json)
{
	size_t escaped = json & (s.p[0] == '\\') & (s.n > 1);
	unsigned char c = (unsigned char)s.p[escaped];
	unsigned kind = kinds[json + escaped][c];

	if (kind == RARE)
		return put_rare(to, s, ret_n);
	const struct spelling *as = &spellings[kind];
	memcpy(to, as, sizeof(*as));
	to[0] = (char)(as->text[0] | (c & as->keep));
	*ret_n = 1 + escaped;
	return to + as->n;
}

/* From *at on, at least to `end`, which may be in the middle of a character. */
static char *put_piece(char *to, struct span s, size_t *at, size_t end, bool json)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t i = *at, n;

	while (i < end) {
		if (end - i >= 8 && eight_are_plain(p + i)) {
			memcpy(to, p + i, 8);
			to += 8;
			i += 8;
		} else if (kinds[1][p[i]] == PLAIN) {
			*to++ = (char)p[i++];
		} else {
			struct span rest = span_make(p + i, s.n - i);
			to = put_special(to, rest, &n, json);
			if (to == NULL)
				return NULL;
			i += n;
		}
	}
	*at = i;
	return to;
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
