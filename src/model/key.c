/* SPDX-License-Identifier: MIT
 * The order form permutes the lead bytes of UTF-8.  F0..F4 start characters that UTF-16 writes with
 * surrogates, from D800 on.  They must come before EE and EF, which start U+E000 to U+FFFF. */
#include "model/key.h"

#include "base/text.h"
#include "model/limits.h"

#include <stdbool.h>

static bool is_forbidden(uint32_t cp)
{
	if (cp == '/' || cp == '\\' || cp == '#' || cp == '?')
		return true;
	return cp < 0x20 || (cp >= 0x7f && cp <= 0x9f);
}

/* Returns true if every character is ASCII and allowed in a key, as in nearly all keys. */
static bool is_plain(struct span s)
{
	bool plain = true;

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		plain &= (c >= 0x20) & (c < 0x7f) & (c != '/') & (c != '\\') & (c != '#') &
			(c != '?');
	}
	return plain;
}

/* s must be valid UTF-8. */
static bool has_forbidden(struct span s)
{
	uint32_t cp;

	for (size_t i = 0; i < s.n;) {
		cp = (unsigned char)s.p[i];
		i += cp < 0x80 ? 1 : utf8_decode(span_make(s.p + i, s.n - i), &cp);
		if (is_forbidden(cp))
			return true;
	}
	return false;
}

enum err key_check(struct span key, const char *what, struct err_detail *detail)
{
	if (key.n <= LIMIT_KEY_UNITS && is_plain(key))
		return ERR_OK;
	if (!utf8_valid(key))
		return err_set(detail, ERR_NAME_NOT_UTF8, "The %s is not valid UTF-8.", what);
	if (key.n > LIMIT_KEY_UNITS && utf16_len(key) > LIMIT_KEY_UNITS)
		return err_set(detail, ERR_KEY_TOO_LARGE, "The %s is longer than %d UTF-16 units.",
			what, LIMIT_KEY_UNITS);
	if (has_forbidden(key))
		return err_set(detail, ERR_KEY_INVALID,
			"The '%s' parameter of value '%.*s' is out of range. "
			"A key may not hold / \\ # ? or control characters.",
			what, key.n < 100 ? (int)key.n : 100, key.p);
	return ERR_OK;
}

void key_to_order(const char *key, size_t n, char *out)
{
	static const unsigned char lead[] = { 0xf3, 0xf4, 0xee, 0xef, 0xf0, 0xf1, 0xf2 };

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)key[i];
		out[i] = c < 0xee ? (char)c : (char)lead[(c - 0xee) % sizeof(lead)];
	}
}

bool key_is_order(struct span key)
{
	for (size_t i = 0; i < key.n; i++)
		if ((unsigned char)key.p[i] >= 0xee)
			return false;
	return true;
}

void key_from_order(const char *order, size_t n, char *out)
{
	static const unsigned char lead[] = { 0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xee, 0xef };

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)order[i];
		out[i] = c < 0xee ? (char)c : (char)lead[(c - 0xee) % sizeof(lead)];
	}
}
