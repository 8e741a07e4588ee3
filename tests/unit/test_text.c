/* SPDX-License-Identifier: MIT
 * base/text.h. */
#include "base/text.h"
#include "check.h"

TEST(every_code_point_encodes_and_decodes)
{
	for (uint32_t cp = 0; cp < 0x110000; cp++) {
		char out[4];
		uint32_t back = 0;
		size_t n = utf8_write(cp, out);
		size_t m = utf8_decode(span_make(out, n), &back);
		bool surrogate = cp >= 0xd800 && cp <= 0xdfff;
		if (surrogate ? m == 0 : m == n && back == cp)
			continue;
		CHECK_EQ_INT(cp, -1);
		return;
	}
}

/* The definition, written out the slow way. */
static bool is_valid_reference(const unsigned char *p, size_t n)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };

	for (size_t i = 0; i < n;) {
		unsigned tails = p[i] < 0x80 ? 0
			: p[i] >> 5 == 6     ? 1
			: p[i] >> 4 == 14    ? 2
			: p[i] >> 3 == 30    ? 3
					     : 4;
		uint32_t cp = tails == 0 ? p[i] : p[i] & (0x3fu >> tails);
		if (tails == 4 || i + tails >= n)
			return false;
		for (unsigned k = 1; k <= tails; k++) {
			if (p[i + k] >> 6 != 2)
				return false;
			cp = cp << 6 | (p[i + k] & 0x3f);
		}
		if (cp < least[tails] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
			return false;
		i += 1 + tails;
	}
	return true;
}

TEST(validity_agrees_with_the_definition)
{
	/* Every lead byte with the interesting second, third and fourth bytes. */
	static const unsigned char tails[] = { 0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
		0xc0, 0xc2, 0xff };
	unsigned char p[4];

	for (unsigned lead = 0; lead < 256; lead++) {
		for (size_t i = 0; i < 12 * 12 * 12; i++) {
			p[0] = (unsigned char)lead;
			p[1] = tails[i % 12];
			p[2] = tails[i / 12 % 12];
			p[3] = tails[i / 144];
			for (size_t n = 1; n <= 4; n++) {
				if (utf8_valid(span_make(p, n)) != is_valid_reference(p, n)) {
					CHECK_EQ_INT(lead, -1);
					return;
				}
			}
		}
	}
}

TEST(the_first_invalid_byte_is_found_at_every_distance)
{
	char s[40];

	for (size_t i = 0; i < sizeof(s); i++) {
		memset(s, 'a', sizeof(s));
		s[i] = (char)0xff;
		CHECK_EQ_INT(utf8_valid_prefix(span_make(s, sizeof(s))), i);
	}
	CHECK_EQ_INT(utf8_valid_prefix(SPAN_LIT("ab\xc3")), 2);
	CHECK_EQ_INT(utf8_valid_prefix(SPAN_LIT("")), 0);
	CHECK(utf8_valid(span_make(NULL, 0)));
}

TEST(utf16_length_counts_pairs_as_two)
{
	CHECK_EQ_INT(utf16_len(SPAN_LIT("")), 0);
	CHECK_EQ_INT(utf16_len(SPAN_LIT("abcdefghijk")), 11);
	CHECK_EQ_INT(utf16_len(SPAN_LIT("\xc3\xa9")), 1);
	CHECK_EQ_INT(utf16_len(SPAN_LIT("\xef\xbf\xbf")), 1);
	CHECK_EQ_INT(utf16_len(SPAN_LIT("\xf0\x9f\x98\x80")), 2);
	CHECK_EQ_INT(utf16_len(SPAN_LIT("abcdefgh\xf0\x9f\x98\x80\xc3\xa9xabcdefghi")), 21);
}

TEST(integers_have_both_their_ends)
{
	int64_t i;
	uint64_t u;

	CHECK(text_to_i64(SPAN_LIT("9223372036854775807"), &i) && i == INT64_MAX);
	CHECK(text_to_i64(SPAN_LIT("-9223372036854775808"), &i) && i == INT64_MIN);
	CHECK(!text_to_i64(SPAN_LIT("9223372036854775808"), &i));
	CHECK(!text_to_i64(SPAN_LIT("-9223372036854775809"), &i));
	CHECK(text_to_i64(SPAN_LIT("-0"), &i) && i == 0);
	CHECK(text_to_u64(SPAN_LIT("18446744073709551615"), &u) && u == UINT64_MAX);
	CHECK(!text_to_u64(SPAN_LIT("18446744073709551616"), &u));
	CHECK(!text_to_u64(SPAN_LIT("99999999999999999999999"), &u));
}

TEST(a_size_has_a_unit_or_none)
{
	uint64_t n = 0;
	CHECK(text_to_size(SPAN_LIT("0"), &n) && n == 0);
	CHECK(text_to_size(SPAN_LIT("5K"), &n) && n == 5 << 10);
	CHECK(text_to_size(SPAN_LIT("8388607T"), &n) && n == UINT64_C(8388607) << 40);
	CHECK(!text_to_size(SPAN_LIT("8388608T"), &n));
	CHECK(!text_to_size(SPAN_LIT("K"), &n) && !text_to_size(SPAN_LIT(""), &n));
	CHECK(!text_to_size(SPAN_LIT("1KK"), &n) && !text_to_size(SPAN_LIT("-1"), &n));
}

TEST(what_is_not_wholly_an_integer_is_refused)
{
	static const char *const bad[] = { "", "-", "+1", " 1", "1 ", "1.0", "0x1", "--1", "1e3",
		"1-" };
	int64_t i;
	uint64_t u;

	for (size_t k = 0; k < ARRAY_LEN(bad); k++) {
		CHECK(!text_to_i64(span_of(bad[k]), &i));
		CHECK(!text_to_u64(span_of(bad[k]), &u));
	}
	CHECK(!text_to_u64(SPAN_LIT("-1"), &u));
}

RUN_TESTS(T(every_code_point_encodes_and_decodes), T(validity_agrees_with_the_definition),
	T(the_first_invalid_byte_is_found_at_every_distance), T(utf16_length_counts_pairs_as_two),
	T(integers_have_both_their_ends), T(a_size_has_a_unit_or_none),
	T(what_is_not_wholly_an_integer_is_refused))
