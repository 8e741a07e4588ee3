/* SPDX-License-Identifier: MIT
 * model/key.h. */
#include "base/text.h"
#include "check.h"
#include "model/key.h"
#include "model/limits.h"

static enum err check(struct span key)
{
	return key_check(key, "RowKey", NULL);
}

TEST(the_empty_key_and_odd_characters_are_legal)
{
	CHECK_ERR(check(SPAN_LIT("")), ERR_OK);
	CHECK_ERR(check(SPAN_LIT(" .%_~!\"'$&*:;<>|\xc3\xa9\xf0\x9f\x98\x80")), ERR_OK);
	CHECK_ERR(check(SPAN_LIT("\xc2\xa0")), ERR_OK); /* U+00A0 */
	CHECK_ERR(check(SPAN_LIT("~")), ERR_OK);        /* U+007E */
}

TEST(exactly_the_forbidden_characters_are_refused)
{
	for (uint32_t cp = 0; cp < 0x300; cp++) {
		char out[4];
		size_t n = utf8_write(cp, out);
		bool control = cp < 0x20 || (cp >= 0x7f && cp <= 0x9f);
		bool punct = cp == '/' || cp == '\\' || cp == '#' || cp == '?';
		CHECK_ERR(check(span_make(out, n)), control || punct ? ERR_KEY_INVALID : ERR_OK);
	}
}

TEST(keys_have_at_most_512_units)
{
	char key[3 * 513];
	size_t n;

	memset(key, 'k', sizeof(key));
	CHECK_ERR(check(span_make(key, 512)), ERR_OK);
	CHECK_ERR(check(span_make(key, 513)), ERR_KEY_TOO_LARGE);
	for (n = 0; n < sizeof(key); n += 3)
		memcpy(key + n, "\xe2\x82\xac", 3);
	CHECK_ERR(check(span_make(key, LIMIT_KEY_BYTES)), ERR_OK);
	CHECK_ERR(check(span_make(key, LIMIT_KEY_BYTES + 3)), ERR_KEY_TOO_LARGE);
	for (n = 0; n < 257 * 4; n += 4)
		memcpy(key + n, "\xf0\x9f\x98\x80", 4);
	CHECK_ERR(check(span_make(key, 256 * 4)), ERR_OK); /* 256 pairs */
	CHECK_ERR(check(span_make(key, 257 * 4)), ERR_KEY_TOO_LARGE);
	key[256 * 4] = 'x';
	CHECK_ERR(check(span_make(key, 256 * 4 + 1)), ERR_KEY_TOO_LARGE);
}

TEST(bad_utf8_is_its_own_error)
{
	CHECK_ERR(check(SPAN_LIT("\xff")), ERR_NAME_NOT_UTF8);
	CHECK_ERR(check(SPAN_LIT("a\xed\xa0\x80")), ERR_NAME_NOT_UTF8);
}

TEST(the_reason_names_the_key)
{
	struct err_detail d;

	(void)key_check(SPAN_LIT("a/b"), "PartitionKey", &d);
	CHECK(strstr(d.text, "'PartitionKey' parameter of value 'a/b' is out of range") != NULL);
}

static uint32_t random_state = 12345;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 8) % n;
}

/* Mostly from the places where the two orders differ. */
static uint32_t random_cp(void)
{
	static const uint32_t from[] = { 'a', 0xe9, 0xd7f0, 0xe000, 0xfff0, 0x10000, 0x10fff0 };

	return from[random_below(ARRAY_LEN(from))] + random_below(14);
}

static size_t units_of(struct span s, uint16_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n;) {
		uint32_t cp;
		i += utf8_decode(span_make(s.p + i, s.n - i), &cp);
		if (cp >= 0x10000) {
			out[n++] = (uint16_t)(0xd800 + ((cp - 0x10000) >> 10));
			cp = 0xdc00 + (cp & 0x3ff);
		}
		out[n++] = (uint16_t)cp;
	}
	return n;
}

static int sign(int v)
{
	return (v > 0) - (v < 0);
}

static int compare_units(struct span a, struct span b)
{
	uint16_t ua[64], ub[64];
	size_t na = units_of(a, ua), nb = units_of(b, ub);

	for (size_t i = 0; i < na && i < nb; i++) {
		if (ua[i] != ub[i])
			return ua[i] < ub[i] ? -1 : 1;
	}
	return (na > nb) - (na < nb);
}

static struct span random_key(char *out)
{
	size_t n = 0;

	for (uint32_t left = random_below(5); left > 0; left--)
		n += utf8_write(random_cp(), out + n);
	return span_make(out, n);
}

TEST(the_order_form_sorts_as_utf16_does)
{
	for (int round = 0; round < 200000; round++) {
		char a[32], b[32], oa[32], ob[32];
		struct span ka = random_key(a), kb = random_key(b);
		key_to_order(ka.p, ka.n, oa);
		key_to_order(kb.p, kb.n, ob);
		int got = span_cmp(span_make(oa, ka.n), span_make(ob, kb.n));
		if (sign(got) != compare_units(ka, kb)) {
			check_fail(__FILE__, __LINE__, "order differs");
			return;
		}
	}
}

TEST(the_order_form_comes_back_also_in_place)
{
	for (uint32_t cp = 1; cp < 0x110000; cp += cp < 0x3000 ? 1 : 37) {
		char key[4], form[4];
		size_t n = utf8_write(cp, key);
		key_to_order(key, n, form);
		CHECK(cp >= 0x80 || form[0] == key[0]);
		CHECK(memchr(form, 0, n) == NULL);
		key_from_order(form, n, form);
		CHECK(memcmp(form, key, n) == 0);
	}
}

RUN_TESTS(T(the_empty_key_and_odd_characters_are_legal),
	T(exactly_the_forbidden_characters_are_refused), T(keys_have_at_most_512_units),
	T(bad_utf8_is_its_own_error), T(the_reason_names_the_key),
	T(the_order_form_sorts_as_utf16_does), T(the_order_form_comes_back_also_in_place))
