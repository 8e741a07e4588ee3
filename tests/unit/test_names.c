/* SPDX-License-Identifier: MIT
 * model/names.h. */
#include "check.h"
#include "model/names.h"

static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm";

TEST(account_names_are_3_to_24_lower_case_letters_and_digits)
{
	static const char *const bad[] = { "Abc", "ab-c", "ab_c", "a.b", "ab c", "ab\xc3\xa9" };

	CHECK_ERR(account_name_check(span_make(letters, 2), NULL), ERR_NAME_TOO_SHORT);
	CHECK_ERR(account_name_check(span_make(letters, 3), NULL), ERR_OK);
	CHECK_ERR(account_name_check(span_make(letters, 24), NULL), ERR_OK);
	CHECK_ERR(account_name_check(span_make(letters, 25), NULL), ERR_NAME_TOO_LONG);
	CHECK_ERR(account_name_check(SPAN_LIT("0a9"), NULL), ERR_OK);
	CHECK_ERR(account_name_check(SPAN_LIT(""), NULL), ERR_NAME_TOO_SHORT);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ERR(account_name_check(span_of(bad[i]), NULL), ERR_NAME_INVALID);
}

TEST(table_names_are_3_to_63_letters_and_digits)
{
	static const char *const bad[] = { "1ab", "a_b", "a-b", "$MetricsX", "a b", "ab\xc3\xa9",
		".git" };

	CHECK_ERR(table_name_check(span_make(letters, 2), NULL), ERR_NAME_TOO_SHORT);
	CHECK_ERR(table_name_check(span_make(letters, 3), NULL), ERR_OK);
	CHECK_ERR(table_name_check(span_make(letters, 63), NULL), ERR_OK);
	CHECK_ERR(table_name_check(span_make(letters, 64), NULL), ERR_NAME_TOO_LONG);
	CHECK_ERR(table_name_check(SPAN_LIT("A09z"), NULL), ERR_OK);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ERR(table_name_check(span_of(bad[i]), NULL), ERR_NAME_INVALID);
}

TEST(tables_is_reserved_in_any_case)
{
	CHECK_ERR(table_name_check(SPAN_LIT("tables"), NULL), ERR_INVALID_INPUT);
	CHECK_ERR(table_name_check(SPAN_LIT("TaBLEs"), NULL), ERR_INVALID_INPUT);
	CHECK_ERR(table_name_check(SPAN_LIT("table"), NULL), ERR_OK);
	CHECK_ERR(table_name_check(SPAN_LIT("tables1"), NULL), ERR_OK);
}

TEST(queue_names_are_3_to_63_letters_digits_and_single_hyphens_inside)
{
	static const char *const bad[] = { "-ab", "ab-", "a--b", "Abc", "a_b", "a.b", "a b",
		"ab\xc3\xa9", "---" };

	CHECK_ERR(queue_name_check(span_make(letters, 2), NULL), ERR_NAME_TOO_SHORT);
	CHECK_ERR(queue_name_check(span_make(letters, 3), NULL), ERR_OK);
	CHECK_ERR(queue_name_check(span_make(letters, 63), NULL), ERR_OK);
	CHECK_ERR(queue_name_check(span_make(letters, 64), NULL), ERR_NAME_TOO_LONG);
	CHECK_ERR(queue_name_check(SPAN_LIT("0-a-9"), NULL), ERR_OK);
	CHECK_ERR(queue_name_check(SPAN_LIT(""), NULL), ERR_NAME_TOO_SHORT);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ERR(queue_name_check(span_of(bad[i]), NULL), ERR_NAME_INVALID);
}

TEST(folding_lowers_ascii_only)
{
	char out[8] = { 0 };

	table_name_fold(SPAN_LIT("AZaz09@"), out);
	CHECK_EQ_STR(out, "azaz09@");
}

TEST(identifiers_in_any_script_are_property_names)
{
	static const char *const good[] = { "a", "_", "_1", "A9_z", "\xc3\xa9t\xc3\xa9",
		"\xd0\x98\xd0\xbc\xd1\x8f", "\xe5\x90\x8d\xe5\x89\x8d", "e\xcc\x81" /* Mn */,
		"a\xe2\x80\xbf\x62" /* Pc */, "\xe2\x85\xa7" /* Nl */, "a\xd9\xa3" /* Nd */,
		"a\xe2\x80\x8d" /* Cf */, "\xf0\x90\x90\x80" /* Deseret */, "xmlThing" };

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CHECK_ERR(property_name_check(span_of(good[i]), NULL), ERR_OK);
}

TEST(what_is_no_identifier_is_refused)
{
	static const char *const bad[] = { "", "1a", "a-b", "a b", "a.b", "a@b", "$a",
		"a\xc2\xb2" /* No */, "\xcc\x81\x65" /* Mn first */, "\xd9\xa3\x61" /* Nd first */,
		"\xf0\x9f\x98\x80" /* So */, "a\xff", "a\xed\xa0\x80", "\xe2\x80\xbf",
		"a\xe2\x82\xac" /* Sc */, "a\xc3\x97" /* U+00D7 */ };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ERR(property_name_check(span_of(bad[i]), NULL), ERR_PROPERTY_NAME_INVALID);
	CHECK_ERR(property_name_check(span_make("a\0b", 3), NULL), ERR_PROPERTY_NAME_INVALID);
}

TEST(property_names_have_at_most_255_units)
{
	char name[4 * 130];

	memset(name, 'n', sizeof(name));
	CHECK_ERR(property_name_check(span_make(name, 255), NULL), ERR_OK);
	CHECK_ERR(property_name_check(span_make(name, 256), NULL), ERR_PROPERTY_NAME_LONG);
	for (size_t i = 0; i < sizeof(name); i += 4)
		memcpy(name + i, "\xf0\x90\x90\x80", 4);
	CHECK_ERR(property_name_check(span_make(name, 127 * 4), NULL), ERR_OK);
	name[127 * 4] = 'x';
	CHECK_ERR(property_name_check(span_make(name, 127 * 4 + 1), NULL), ERR_OK);
	memcpy(name + 127 * 4, "\xf0\x90\x90\x80", 4);
	CHECK_ERR(property_name_check(span_make(name, 128 * 4), NULL), ERR_PROPERTY_NAME_LONG);
}

RUN_TESTS(T(account_names_are_3_to_24_lower_case_letters_and_digits),
	T(table_names_are_3_to_63_letters_and_digits), T(tables_is_reserved_in_any_case),
	T(queue_names_are_3_to_63_letters_digits_and_single_hyphens_inside),
	T(folding_lowers_ascii_only), T(identifiers_in_any_script_are_property_names),
	T(what_is_no_identifier_is_refused), T(property_names_have_at_most_255_units))
