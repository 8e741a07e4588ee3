/* SPDX-License-Identifier: MIT
 * UTF-8 as in the Unicode standard, table 3-7.  The first byte limits the second byte.  This
 * excludes overlong forms, surrogates and code points above U+10FFFF. */
#include "base/text.h"

static bool is_tail(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

static size_t decode2(const unsigned char *p, size_t n, uint32_t *ret_cp)
{
	if (p[0] < 0xc2 || n < 2 || !is_tail(p[1]))
		return 0;
	*ret_cp = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
	return 2;
}

static size_t decode3(const unsigned char *p, size_t n, uint32_t *ret_cp)
{
	if (n < 3 || !is_tail(p[1]) || !is_tail(p[2]))
		return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))
		return 0;
	*ret_cp = (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
	return 3;
}

static size_t decode4(const unsigned char *p, size_t n, uint32_t *ret_cp)
{
	if (p[0] > 0xf4 || n < 4 || !is_tail(p[1]) || !is_tail(p[2]) || !is_tail(p[3]))
		return 0;
	if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	*ret_cp =
		(p[0] & 0x07u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
	return 4;
}

size_t utf8_decode(struct span s, uint32_t *ret_cp)
{
	const unsigned char *p = (const unsigned char *)s.p;

	if (s.n == 0)
		return 0;
	if (p[0] < 0x80) {
		*ret_cp = p[0];
		return 1;
	}
	if (p[0] < 0xe0)
		return decode2(p, s.n, ret_cp);
	if (p[0] < 0xf0)
		return decode3(p, s.n, ret_cp);
	return decode4(p, s.n, ret_cp);
}

size_t utf8_write(uint32_t cp, char out[4])
{
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xc0 | cp >> 6);
		out[1] = (char)(0x80 | (cp & 0x3f));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (char)(0xe0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
		out[2] = (char)(0x80 | (cp & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	out[3] = (char)(0x80 | (cp & 0x3f));
	return 4;
}

/* Returns the first offset from i on that is not ASCII.  It reads eight bytes at a time. */
static size_t skip_ascii(struct span s, size_t i)
{
	uint64_t word;

	while (s.n - i >= sizeof(word)) {
		memcpy(&word, s.p + i, sizeof(word));
		if ((word & UINT64_C(0x8080808080808080)) != 0)
			break;
		i += sizeof(word);
	}
	while (i < s.n && (unsigned char)s.p[i] < 0x80)
		i++;
	return i;
}

size_t utf8_valid_prefix(struct span s)
{
	size_t i = skip_ascii(s, 0);
	uint32_t cp;

	while (i < s.n) {
		size_t n = utf8_decode(span_make(s.p + i, s.n - i), &cp);
		if (n == 0)
			return i;
		i = skip_ascii(s, i + n);
	}
	return i;
}

bool utf8_valid(struct span s)
{
	return utf8_valid_prefix(s) == s.n;
}

size_t utf16_len(struct span s)
{
	size_t units = 0;

	/* A character is one unit; a character of four bytes is two. */
	for (size_t i = 0; i < s.n;) {
		size_t ascii = skip_ascii(s, i) - i;
		i += ascii;
		units += ascii;
		for (; i < s.n && (unsigned char)s.p[i] >= 0x80; i++)
			units += !is_tail((unsigned char)s.p[i]) + ((unsigned char)s.p[i] >= 0xf0);
	}
	return units;
}

bool text_to_u64(struct span s, uint64_t *ret)
{
	uint64_t v = 0;

	if (s.n == 0)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		unsigned d = (unsigned)(unsigned char)s.p[i] - '0';
		if (d > 9 || __builtin_mul_overflow(v, UINT64_C(10), &v) ||
			__builtin_add_overflow(v, (uint64_t)d, &v))
			return false;
	}
	*ret = v;
	return true;
}

size_t text_count_digits(struct span s, size_t i)
{
	size_t n = 0;
	while (i + n < s.n && s.p[i + n] >= '0' && s.p[i + n] <= '9')
		n++;
	return n;
}

bool text_to_i64(struct span s, int64_t *ret)
{
	bool minus = s.n > 0 && s.p[0] == '-';
	uint64_t v;

	if (!text_to_u64(minus ? span_make(s.p + 1, s.n - 1) : s, &v))
		return false;
	if (v > (uint64_t)INT64_MAX + minus)
		return false;
	*ret = (int64_t)(minus ? 0 - v : v);
	return true;
}

bool text_to_size(struct span s, uint64_t *ret)
{
	static const char units[] = "KMGT";
	const char *unit = s.n > 1 ? memchr(units, s.p[s.n - 1], sizeof(units) - 1) : NULL;
	unsigned shift = unit != NULL ? 10 * (unsigned)(unit - units + 1) : 0;
	uint64_t number;
	if (!text_to_u64(span_make(s.p, s.n - (unit != NULL)), &number) ||
		number > (uint64_t)INT64_MAX >> shift)
		return false;
	*ret = number << shift;
	return true;
}

static bool is_one_of(char c, const char *set)
{
	return c <= ' ' && c != '\0' && strchr(set, c) != NULL; /* all blanks are below */
}

struct span text_trim(struct span s, const char *blanks)
{
	while (s.n > 0 && is_one_of(s.p[s.n - 1], blanks))
		s.n--;
	while (s.n > 0 && is_one_of(s.p[0], blanks))
		s = span_make(s.p + 1, s.n - 1);
	return s;
}
