/* SPDX-License-Identifier: MIT
 * A hidden reference is a mark and a letter for the character.  The mark is a character that XML
 * can contain and that is rarely used.  A mark in the text is hidden too, so every text is restored
 * exactly.  Letters have no meaning in markup. */
#include "codec/xml_controls.h"

#include "base/text.h"
#include "codec/xml_scan.h"

#define MARK "\xc2\x80" /* U+0080 */
#define MARK_CP 0x80

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefxyz";
#define LETTER_FFFE 32
#define LETTER_FFFF 33
#define LETTER_MARK 34

bool xml_can_carry(uint32_t cp)
{
	if (cp < 0x20)
		return cp == '\t' || cp == '\n' || cp == '\r';
	return cp != 0xfffe && cp != 0xffff;
}

static int digit_of(char c, uint32_t base)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (base == 10)
		return -1;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Returns the length of the character reference at the start of s, or 0. */
static size_t reference(struct span s, uint32_t *ret)
{
	uint32_t cp = 0, base = 10;
	size_t i = 2;

	if (!span_starts(s, SPAN_LIT("&#")))
		return 0;
	if (i < s.n && s.p[i] == 'x') {
		base = 16;
		i++;
	}
	size_t first = i;
	for (; i < s.n; i++) {
		int digit = digit_of(s.p[i], base);
		if (digit < 0)
			break;
		/* Larger numbers are invalid, however they continue. */
		cp = cp > 0x10ffff ? cp : cp * base + (uint32_t)digit;
	}
	if (i == first || i == s.n || s.p[i] != ';')
		return 0;
	*ret = cp;
	return i + 1;
}

/* Returns the letter that hides the character; -1 if it needs none. */
static int letter_of(uint32_t cp)
{
	if (cp == MARK_CP)
		return LETTER_MARK;
	if (xml_can_carry(cp))
		return -1;
	if (cp < 0x20)
		return (int)cp;
	return cp == 0xfffe ? LETTER_FFFE : LETTER_FFFF;
}

static bool has_any(struct span s)
{
	uint32_t cp;

	for (;;) {
		size_t i = span_find(s, SPAN_LIT("&#"));
		if (i == s.n)
			return false;
		s = span_make(s.p + i, s.n - i);
		if (reference(s, &cp) > 0 && !xml_can_carry(cp))
			return true;
		s = span_make(s.p + 2, s.n - 2);
	}
}

static void add_hidden(struct buf *out, int letter)
{
	buf_add_str(out, MARK);
	buf_add_char(out, letters[letter]);
}

static void add_verbatim(struct buf *out, struct span s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (span_starts(span_make(s.p + i, s.n - i), SPAN_LIT(MARK))) {
			add_hidden(out, LETTER_MARK);
			i++;
		} else {
			buf_add_char(out, s.p[i]);
		}
	}
}

/* Appends the next piece of the document and returns its length. */
static size_t hide_one(struct span s, struct buf *out)
{
	uint32_t cp = 0;
	size_t n = s.p[0] == '<' ? xml_verbatim(s) : 0;

	/* There are no references inside of these. */
	if (n > 0) {
		add_verbatim(out, span_make(s.p, n));
		return n;
	}
	n = reference(s, &cp);
	if (n == 0 && span_starts(s, SPAN_LIT(MARK))) {
		cp = MARK_CP;
		n = strlen(MARK);
	}
	if (n > 0 && letter_of(cp) >= 0) {
		add_hidden(out, letter_of(cp));
		return n;
	}
	n = n == 0 ? 1 : n;
	buf_add(out, s.p, n);
	return n;
}

bool xml_controls_hide(struct span document, struct buf *out)
{
	if (!has_any(document))
		return false;
	for (size_t i = 0; i < document.n;)
		i += hide_one(span_make(document.p + i, document.n - i), out);
	return true;
}

static size_t shown(int letter, char out[4])
{
	if (letter == LETTER_MARK)
		return utf8_write(MARK_CP, out);
	if (letter == LETTER_FFFE || letter == LETTER_FFFF)
		return utf8_write(letter == LETTER_FFFE ? 0xfffe : 0xffff, out);
	return utf8_write((uint32_t)letter, out);
}

size_t xml_controls_show(char *text, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n;) {
		struct span rest = span_make(text + i, n - i);
		const char *letter = rest.n > 2 && span_starts(rest, SPAN_LIT(MARK))
			? memchr(letters, rest.p[2], sizeof(letters) - 1)
			: NULL;
		char c[4];
		if (letter == NULL) {
			text[to++] = text[i++];
			continue;
		}
		size_t len = shown((int)(letter - letters), c);
		memcpy(text + to, c, len);
		to += len;
		i += 3;
	}
	return to;
}
