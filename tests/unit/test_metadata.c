/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "model/limits.h"
#include "model/metadata.h"

#include <stdlib.h>

static enum err add(struct buf *text, const char *name, const char *value)
{
	return metadata_add(text, span_of(name), span_of(value), NULL);
}

TEST(pairs_are_read_as_they_were_added)
{
	struct buf text = BUF_INIT(1000);
	CHECK_ERR(add(&text, "Colour", "a:b c"), ERR_OK);
	CHECK_ERR(add(&text, "_x", ""), ERR_OK);
	CHECK_EQ_STR(text.data, "Colour:a:b c\n_x:\n");
	CHECK_ERR(metadata_check(buf_span(&text), NULL), ERR_OK);
	struct span rest = buf_span(&text);
	struct metadata_pair p;
	CHECK(metadata_next(&rest, &p) && span_is(p.name, "Colour") && span_is(p.value, "a:b c"));
	CHECK(metadata_next(&rest, &p) && span_is(p.name, "_x") && span_is(p.value, ""));
	CHECK(!metadata_next(&rest, &p));
	buf_fini(&text);
}

TEST(a_name_is_an_identifier_and_there_once_in_any_case)
{
	struct buf text = BUF_INIT(1000);
	CHECK_ERR(add(&text, "", "v"), ERR_METADATA_INVALID);
	CHECK_ERR(add(&text, "1a", "v"), ERR_METADATA_INVALID);
	CHECK_ERR(add(&text, "a-b", "v"), ERR_METADATA_INVALID);
	CHECK_ERR(add(&text, "a", "v\n"), ERR_METADATA_INVALID);
	CHECK_ERR(add(&text, "a", "v\x7f"), ERR_METADATA_INVALID);
	CHECK_EQ_INT(text.len, 0);
	CHECK_ERR(add(&text, "a", "v"), ERR_OK);
	CHECK_ERR(add(&text, "A", "w"), ERR_METADATA_INVALID);
	CHECK_ERR(add(&text, "ab", "w"), ERR_OK);
	buf_fini(&text);
	CHECK_ERR(metadata_check(SPAN_LIT("a:1\nA:2\n"), NULL), ERR_METADATA_INVALID);
	CHECK_ERR(metadata_check(SPAN_LIT("a:1\n\nb:2\n"), NULL), ERR_METADATA_INVALID);
	CHECK_ERR(metadata_check(SPAN_LIT("a:1"), NULL), ERR_METADATA_INVALID);
	CHECK_ERR(metadata_check(SPAN_LIT(""), NULL), ERR_OK);
}

TEST(names_and_values_have_8_kib_together)
{
	struct buf text = BUF_INIT(3 * LIMIT_METADATA_BYTES);
	char *value = malloc(LIMIT_METADATA_BYTES);
	REQUIRE(value != NULL);
	memset(value, 'v', LIMIT_METADATA_BYTES);
	CHECK_ERR(add(&text, "a", "1"), ERR_OK);
	CHECK_ERR(metadata_add(
			  &text, SPAN_LIT("b"), span_make(value, LIMIT_METADATA_BYTES - 2), NULL),
		ERR_METADATA_TOO_LARGE);
	CHECK_ERR(metadata_add(
			  &text, SPAN_LIT("b"), span_make(value, LIMIT_METADATA_BYTES - 3), NULL),
		ERR_OK);
	CHECK_ERR(metadata_check(buf_span(&text), NULL), ERR_OK);
	CHECK_ERR(add(&text, "c", ""), ERR_METADATA_TOO_LARGE);
	buf_add_str(&text, "c:\n");
	CHECK_ERR(metadata_check(buf_span(&text), NULL), ERR_METADATA_TOO_LARGE);
	free(value);
	buf_fini(&text);
}

TEST(equal_metadata_has_the_same_names_and_values_in_any_order)
{
	CHECK(metadata_equal(SPAN_LIT(""), SPAN_LIT("")));
	CHECK(metadata_equal(SPAN_LIT("a:1\nb:2\n"), SPAN_LIT("B:2\nA:1\n")));
	CHECK(!metadata_equal(SPAN_LIT("a:1\nb:2\n"), SPAN_LIT("a:1\nb:3\n")));
	CHECK(!metadata_equal(SPAN_LIT("a:1\nb:2\n"), SPAN_LIT("a:1\nc:2\n")));
	CHECK(!metadata_equal(SPAN_LIT("a:x\n"), SPAN_LIT("a:X\n")));
	CHECK(!metadata_equal(SPAN_LIT("a:1\n"), SPAN_LIT("")));
}

RUN_TESTS(T(pairs_are_read_as_they_were_added),
	T(a_name_is_an_identifier_and_there_once_in_any_case),
	T(names_and_values_have_8_kib_together),
	T(equal_metadata_has_the_same_names_and_values_in_any_order))
