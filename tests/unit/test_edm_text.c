/* SPDX-License-Identifier: MIT
 * codec/edm_text.h. */
#include "check.h"
#include "codec/edm_text.h"

#include <locale.h>

static struct buf bytes = { .limit = 1000 };

static enum err parse(enum edm_type type, const char *text, struct value *ret)
{
	buf_clear(&bytes);
	return edm_text_parse(type, span_of(text), ret, &bytes, NULL);
}

static const char *format(const struct value *v)
{
	static struct buf out = { .limit = 1000 };

	buf_clear(&out);
	edm_text_format(v, &out);
	CHECK(buf_ok(&out));
	return out.data;
}

/* Reads text, and writes it as want. */
static void reads_as(enum edm_type type, const char *text, const char *want)
{
	struct value v;

	if (parse(type, text, &v) == ERR_OK)
		CHECK_EQ_STR(format(&v), want);
	else
		check_fail(__FILE__, __LINE__, text);
}

static void refused(enum edm_type type, const char *text, enum err want)
{
	struct value v;
	enum err got = parse(type, text, &v);

	if (got != want) {
		CHECK_ERR(got, want);
		check_fail(__FILE__, __LINE__, text);
	}
}

TEST(integers_have_the_range_of_their_type)
{
	reads_as(EDM_INT32, "2147483647", "2147483647");
	reads_as(EDM_INT32, "-2147483648", "-2147483648");
	refused(EDM_INT32, "2147483648", ERR_VALUE_INVALID);
	refused(EDM_INT32, "-2147483649", ERR_VALUE_INVALID);
	reads_as(EDM_INT64, "9223372036854775807", "9223372036854775807");
	reads_as(EDM_INT64, "-9223372036854775808", "-9223372036854775808");
	refused(EDM_INT64, "9223372036854775808", ERR_VALUE_INVALID);
	refused(EDM_INT64, "", ERR_VALUE_INVALID);
	refused(EDM_INT32, "1.0", ERR_VALUE_INVALID);
	reads_as(EDM_INT32, "-0", "0");
}

TEST(doubles_are_written_shortest_with_point_or_exponent)
{
	reads_as(EDM_DOUBLE, "3", "3.0");
	reads_as(EDM_DOUBLE, "-0", "-0.0");
	reads_as(EDM_DOUBLE, "0.1", "0.1");
	reads_as(EDM_DOUBLE, "1.5e24", "1.5E+24");
	reads_as(EDM_DOUBLE, "1E-7", "1E-07");
	reads_as(EDM_DOUBLE, "1.7976931348623157e308", "1.7976931348623157E+308");
	reads_as(EDM_DOUBLE, "2.2250738585072014e-308", "2.2250738585072014E-308");
	reads_as(EDM_DOUBLE, "4.94065645841247e-324", "5E-324");
	reads_as(EDM_DOUBLE, "0.30000000000000004", "0.30000000000000004");
	reads_as(EDM_DOUBLE, ".5", "0.5");
	reads_as(EDM_DOUBLE, "5.", "5.0");
	reads_as(EDM_DOUBLE, "+5", "5.0");
}

TEST(double_specials_have_two_spellings_in_and_one_out)
{
	reads_as(EDM_DOUBLE, "NaN", "NaN");
	reads_as(EDM_DOUBLE, "Infinity", "Infinity");
	reads_as(EDM_DOUBLE, "INF", "Infinity");
	reads_as(EDM_DOUBLE, "-Infinity", "-Infinity");
	reads_as(EDM_DOUBLE, "-INF", "-Infinity");
}

TEST(what_is_no_finite_decimal_is_no_double)
{
	static const char *const bad[] = { "", ".", "-", "e5", "1e", "1e+", "0x10", " 1", "1 ",
		"inf", "nan", "nan(1)", "1,5", "1.5.1", "1e999", "-1e999", "infinity", "1_0" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		refused(EDM_DOUBLE, bad[i], ERR_VALUE_INVALID);
}

TEST(random_doubles_come_back_exactly)
{
	uint64_t bits = 88172645463325252;

	for (int i = 0; i < 100000; i++) {
		struct value v = { .type = EDM_DOUBLE }, back;
		bits ^= bits << 13;
		bits ^= bits >> 7;
		bits ^= bits << 17;
		memcpy(&v.dbl, &bits, sizeof(bits));
		REQUIRE(parse(EDM_DOUBLE, format(&v), &back) == ERR_OK);
		if (!value_same(&v, &back)) {
			check_fail(__FILE__, __LINE__, format(&v));
			return;
		}
	}
}

TEST(a_very_long_number_is_read)
{
	char text[5001];
	struct value v;

	memset(text, '1', sizeof(text));
	text[1] = '.';
	text[5000] = '\0';
	REQUIRE(parse(EDM_DOUBLE, text, &v) == ERR_OK);
	CHECK(v.dbl > 1.11 && v.dbl < 1.12);
}

TEST(the_locale_does_not_matter)
{
	struct value v = { .type = EDM_DOUBLE, .dbl = 1.5 };

	if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "fr_FR.UTF-8") == NULL)
		printf("# no locale with a decimal comma here\n");
	CHECK_EQ_STR(format(&v), "1.5");
	reads_as(EDM_DOUBLE, "2.5", "2.5");
	setlocale(LC_ALL, "C");
}

TEST(booleans_are_words_or_digits)
{
	reads_as(EDM_BOOLEAN, "true", "true");
	reads_as(EDM_BOOLEAN, "1", "true");
	reads_as(EDM_BOOLEAN, "false", "false");
	reads_as(EDM_BOOLEAN, "0", "false");
	reads_as(EDM_BOOLEAN, "True", "true");
	reads_as(EDM_BOOLEAN, "TRUE", "true");
	reads_as(EDM_BOOLEAN, "tRuE", "true");
	reads_as(EDM_BOOLEAN, "False", "false");
	reads_as(EDM_BOOLEAN, "FALSE", "false");
	refused(EDM_BOOLEAN, "TRUE ", ERR_VALUE_INVALID);
	refused(EDM_BOOLEAN, "tru", ERR_VALUE_INVALID);
	refused(EDM_BOOLEAN, "falsee", ERR_VALUE_INVALID);
	refused(EDM_BOOLEAN, "", ERR_VALUE_INVALID);
	refused(EDM_BOOLEAN, "2", ERR_VALUE_INVALID);
}

TEST(datetimes_have_both_their_ends)
{
	reads_as(EDM_DATETIME, "1601-01-01T00:00:00Z", "1601-01-01T00:00:00Z");
	refused(EDM_DATETIME, "1600-12-31T23:59:59.9999999Z", ERR_OUT_OF_RANGE);
	refused(EDM_DATETIME, "0001-01-01T00:00:00Z", ERR_OUT_OF_RANGE);
	reads_as(EDM_DATETIME, "9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z");
	refused(EDM_DATETIME, "9999-12-31T23:59:59-00:01", ERR_OUT_OF_RANGE);
	refused(EDM_DATETIME, "1601-01-01T00:00:00+00:01", ERR_OUT_OF_RANGE);
	reads_as(EDM_DATETIME, "1600-12-31T23:59:00-00:01", "1601-01-01T00:00:00Z");
}

TEST(datetimes_are_read_in_every_form)
{
	reads_as(EDM_DATETIME, "2026-11-20T12:29", "2026-11-20T12:29:00Z");
	reads_as(EDM_DATETIME, "2026-11-20T12:29Z", "2026-11-20T12:29:00Z");
	reads_as(EDM_DATETIME, "2026-11-20T12:29:19", "2026-11-20T12:29:19Z");
	reads_as(EDM_DATETIME, "2026-11-20T12:29:19.0030000", "2026-11-20T12:29:19.003Z");
	reads_as(EDM_DATETIME, "2026-11-20T12:29:19.12345679999Z", "2026-11-20T12:29:19.1234567Z");
	reads_as(EDM_DATETIME, "2026-11-20T00:29:19+05:30", "2026-11-19T18:59:19Z");
	reads_as(EDM_DATETIME, "2026-11-20T23:29:19-14:00", "2026-11-21T13:29:19Z");
	reads_as(EDM_DATETIME, "2000-02-29T00:00:00Z", "2000-02-29T00:00:00Z");
}

TEST(what_is_no_instant_is_refused)
{
	static const char *const bad[] = { "", "2026-11-20", "2026-11-20T", "2026-11-20T12",
		"2026-11-20 12:29:19Z", "2026-11-20T24:00:00Z", "2026-11-20T23:60:00Z",
		"2026-11-20T23:59:60Z", "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z",
		"1900-02-29T00:00:00Z", "2026-11-31T00:00:00Z", "2026-11-00T00:00:00Z",
		"2026-11-20T12:29:19.Z", "2026-11-20T12:29:19z", "2026-11-20T12:29:19+0530",
		"2026-11-20T12:29:19+14:01", "2026-11-20T12:29:19+05:60", "2026-11-20T12:29:19ZZ",
		"26-11-20T12:29:19Z", "12026-11-20T12:29:19Z", "2026-1-20T12:29:19Z",
		"-026-11-20T12:29:19Z" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		refused(EDM_DATETIME, bad[i], ERR_VALUE_INVALID);
}

TEST(guids_are_read_in_three_forms)
{
	const char *want = "c9da6455-213d-42c9-9a79-3e9149a57833";
	struct value v;

	reads_as(EDM_GUID, want, want);
	reads_as(EDM_GUID, "C9DA6455-213D-42C9-9A79-3E9149A57833", want);
	reads_as(EDM_GUID, "c9da6455213d42c99a793e9149a57833", want);
	reads_as(EDM_GUID, "{c9da6455-213d-42c9-9a79-3e9149a57833}", want);
	REQUIRE(parse(EDM_GUID, want, &v) == ERR_OK);
	CHECK_EQ_INT(v.guid[0], 0xc9);
	CHECK_EQ_INT(v.guid[15], 0x33);
}

TEST(other_guids_are_refused)
{
	static const char *const bad[] = { "", "{}", "c9da6455-213d-42c9-9a79-3e9149a5783",
		"c9da6455-213d-42c9-9a79-3e9149a578333", "c9da6455x213d-42c9-9a79-3e9149a57833",
		"c9da64552-13d-42c9-9a79-3e9149a57833", "g9da6455-213d-42c9-9a79-3e9149a57833",
		"{c9da6455-213d-42c9-9a79-3e9149a57833", "(c9da6455-213d-42c9-9a79-3e9149a57833)",
		"{c9da6455213d42c99a793e9149a57833}", "c9da6455213d42c99a793e9149a5783-" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		refused(EDM_GUID, bad[i], ERR_VALUE_INVALID);
}

TEST(binary_is_strict_base64)
{
	reads_as(EDM_BINARY, "AQIDBA==", "AQIDBA==");
	reads_as(EDM_BINARY, "", "");
	refused(EDM_BINARY, "AQIDBA", ERR_VALUE_INVALID);
	refused(EDM_BINARY, "AQID BA==", ERR_VALUE_INVALID);
}

TEST(binary_results_follow_each_other_in_the_buffer)
{
	struct buf out = BUF_INIT(100);
	struct value v;

	buf_add_str(&out, "before");
	CHECK_ERR(edm_text_parse(EDM_BINARY, SPAN_LIT("YWJj"), &v, &out, NULL), ERR_OK);
	CHECK(span_is(v.bytes, "abc"));
	CHECK(span_is(buf_span(&out), "beforeabc"));
	buf_fini(&out);
}

TEST(strings_are_themselves)
{
	reads_as(EDM_STRING, "x\xc3\xa9", "x\xc3\xa9");
	refused(EDM_STRING, "\xff", ERR_VALUE_INVALID);
	buf_fini(&bytes);
}

TEST(the_reason_says_value_and_type)
{
	struct err_detail d;
	struct value v;

	CHECK_ERR(edm_text_parse(EDM_GUID, SPAN_LIT("zz"), &v, NULL, &d), ERR_VALUE_INVALID);
	CHECK_EQ_STR(d.text, "'zz' is not a value of Edm.Guid");
}

TEST(an_instant_is_cut_at_no_place)
{
	static const char *const bad[] = { "2026-11-20T12:29:", "2026-11-20T12:2", "2026-11-2",
		"2026-1x-20T12:29:19Z", "2026-11-2xT12:29:19Z", "2026-11-20T12:xx:19Z",
		"2026-11-20T12:29:xxZ", "2026-11-20T12:29:19+", "2026-11-20T12:29:19+0",
		"2026-11-20T12:29:19+xx:00",
		"2026-11-20T12:29:19-05:", "2026-11-20T12:29:19-05:x0" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		refused(EDM_DATETIME, bad[i], ERR_VALUE_INVALID);
	reads_as(EDM_DATETIME, "2026-11-20T12:29:19-05:30", "2026-11-20T17:59:19Z");
}

TEST(a_guid_has_both_its_braces)
{
	refused(EDM_GUID, "{c9da6455-213d-42c9-9a79-3e9149a57833)", ERR_VALUE_INVALID);
	refused(EDM_GUID, "(c9da6455-213d-42c9-9a79-3e9149a57833}", ERR_VALUE_INVALID);
}

TEST(bytes_without_room_are_out_of_memory_not_wrong)
{
	struct buf small = { .limit = 3 };
	struct value v;

	CHECK_ERR(edm_text_parse(EDM_BINARY, SPAN_LIT("YWJj"), &v, &small, NULL), ERR_OK);
	CHECK(span_is(v.bytes, "abc"));
	CHECK_ERR(edm_text_parse(EDM_BINARY, SPAN_LIT("YWJj"), &v, &small, NULL), ERR_NO_MEMORY);
	buf_fini(&small);
}

TEST(seventeen_digits_are_enough_for_every_double)
{
	reads_as(EDM_DOUBLE, "0.1", "0.1");
	reads_as(EDM_DOUBLE, "0.30000000000000004", "0.30000000000000004");
	reads_as(EDM_DOUBLE, "4.9406564584124654e-324", "5E-324");
}

RUN_TESTS(T(integers_have_the_range_of_their_type),
	T(doubles_are_written_shortest_with_point_or_exponent),
	T(double_specials_have_two_spellings_in_and_one_out),
	T(what_is_no_finite_decimal_is_no_double), T(random_doubles_come_back_exactly),
	T(a_very_long_number_is_read), T(the_locale_does_not_matter),
	T(booleans_are_words_or_digits), T(datetimes_have_both_their_ends),
	T(datetimes_are_read_in_every_form), T(what_is_no_instant_is_refused),
	T(guids_are_read_in_three_forms), T(other_guids_are_refused), T(binary_is_strict_base64),
	T(binary_results_follow_each_other_in_the_buffer), T(strings_are_themselves),
	T(the_reason_says_value_and_type), T(an_instant_is_cut_at_no_place),
	T(a_guid_has_both_its_braces), T(bytes_without_room_are_out_of_memory_not_wrong),
	T(seventeen_digits_are_enough_for_every_double))
