/* SPDX-License-Identifier: MIT
 * Only escapes that the writer produces are decoded: _x0020_ stays as it is. */
#include "codec/xml_names.h"

#include "base/compiler.h"
#include "base/text.h"

#define ESCAPE_BYTES 7 /* _x00AA_ */

/* The characters above ASCII that XML 1.0 (fifth edition) allows in a name. */
static bool is_name_char(uint32_t cp)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0xb7, 0xb7 },
		{ 0xc0, 0xd6 },
		{ 0xd8, 0xf6 },
		{ 0xf8, 0x37d },
		{ 0x37f, 0x1fff },
		{ 0x200c, 0x200d },
		{ 0x203f, 0x2040 },
		{ 0x2070, 0x218f },
		{ 0x2c00, 0x2fef },
		{ 0x3001, 0xd7ff },
		{ 0xf900, 0xfdcf },
		{ 0xfdf0, 0xfffd },
		{ 0x10000, 0xeffff },
	};
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (cp >= ranges[i].first && cp <= ranges[i].last)
			return true;
	return false;
}

static bool is_escaped(uint32_t cp)
{
	return cp >= 0x80 && cp <= 0xffff && !is_name_char(cp);
}

static int digit_of(char c)
{
	static const char digits[] = "0123456789ABCDEF";
	const char *p = memchr(digits, c, sizeof(digits) - 1);
	return p == NULL ? -1 : (int)(p - digits);
}

/* Returns true if s begins with an escape of the writer, apart from the last underscore. */
static bool begins_escape(struct span s, uint32_t *ret_cp)
{
	uint32_t cp = 0;

	if (s.n < ESCAPE_BYTES || s.p[0] != '_' || s.p[1] != 'x')
		return false;
	for (size_t i = 2; i < ESCAPE_BYTES - 1; i++) {
		int digit = digit_of(s.p[i]);
		if (digit < 0)
			return false;
		cp = cp * 16 + (uint32_t)digit;
	}
	*ret_cp = cp;
	return cp == '_' || is_escaped(cp);
}

static bool is_escape(struct span s, uint32_t *ret_cp)
{
	return begins_escape(s, ret_cp) && s.p[ESCAPE_BYTES - 1] == '_';
}

/* Returns true if the start of the name, once written, would look like an escape.  The text behind
 * it begins with an underscore only in some cases. */
static bool would_be_escape(struct span name)
{
	uint32_t cp, next = 0;

	if (!begins_escape(name, &cp))
		return false;
	(void)utf8_decode(span_make(name.p + ESCAPE_BYTES - 1, name.n - ESCAPE_BYTES + 1), &next);
	return next == '_' || is_escaped(next);
}

bool xml_name_is_plain(struct span name)
{
	for (size_t i = 0; i < name.n; i++)
		if ((unsigned char)name.p[i] >= 0x80 ||
			(i > 0 && name.p[i] == 'x' && name.p[i - 1] == '_'))
			return false;
	return true;
}

void xml_name_add(struct buf *out, struct span name)
{
	if (xml_name_is_plain(name)) {
		buf_add_span(out, name);
		return;
	}
	while (name.n > 0) {
		uint32_t cp = 0;
		size_t n = utf8_decode(name, &cp);
		n = n == 0 ? 1 : n;
		if (is_escaped(cp) || would_be_escape(name))
			buf_addf(out, "_x%04X_", cp);
		else
			buf_add(out, name.p, n);
		name = span_make(name.p + n, name.n - n);
	}
}

size_t xml_name_show(char *name, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n;) {
		uint32_t cp;
		if (is_escape(span_make(name + i, n - i), &cp)) {
			to += utf8_write(cp, name + to);
			i += ESCAPE_BYTES;
		} else {
			name[to++] = name[i++];
		}
	}
	return to;
}
