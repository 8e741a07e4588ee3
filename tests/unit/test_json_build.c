/* SPDX-License-Identifier: MIT
 * codec/json_build.h. */
#include "check.h"
#include "codec/json_build.h"

static const char *ended(struct json_build *b)
{
	static struct buf out = BUF_INIT(65536);
	buf_clear(&out);
	json_end(b, &out);
	return buf_ok(&out) ? out.data : "(failed)";
}

TEST(members_keep_their_order_and_containers_nest)
{
	struct json_build b;
	json_begin(&b);
	json_add_str(&b, "z", "1");
	json_open_array(&b, "a");
	json_open_object(&b, NULL);
	json_add_bool(&b, "t", true);
	json_add_null(&b, "n");
	json_close(&b);
	json_add_count(&b, NULL, 7);
	json_close(&b);
	json_open_object(&b, "left open"); /* json_end() closes what is open */
	json_add_bool(&b, "f", false);
	CHECK_EQ_STR(ended(&b),
		"{\"z\":\"1\",\"a\":[{\"t\":true,\"n\":null},7],\"left open\":{\"f\":false}}");
}

TEST(counts_are_exact_up_to_63_bits)
{
	struct json_build b;
	json_begin(&b);
	json_add_count(&b, "53", (UINT64_C(1) << 53) + 1);
	json_add_count(&b, "63", INT64_MAX);
	json_add_count(&b, "64", UINT64_MAX);
	CHECK_EQ_STR(ended(&b),
		"{\"53\":9007199254740993,\"63\":9223372036854775807,\"64\":9223372036854775807}");
}

TEST(hundredths_have_no_more_digits_than_they_need)
{
	struct json_build b;
	json_begin(&b);
	json_add_hundredths(&b, "a", 0);
	json_add_hundredths(&b, "b", 70);
	json_add_hundredths(&b, "c", 1234567);
	CHECK_EQ_STR(ended(&b), "{\"a\":0.0,\"b\":0.7,\"c\":12345.67}");
}

TEST(texts_hold_any_character_and_bytes_that_are_none_become_question_marks)
{
	struct json_build b;
	json_begin(&b);
	json_add_text(&b, "a", SPAN_LIT("\0\x1f\n\"\\/\x7f\xc3\xbc\xf0\x9f\x98\x80"));
	json_add_text(&b, "b", SPAN_LIT("\xff,a\xc3(\xe2\x82"));
	json_add_text(&b, "c", (struct span){ 0 });
	CHECK_EQ_STR(ended(&b),
		"{\"a\":\"\\u0000\\u001F\\n\\\"\\\\/\x7f\xc3\xbc\xf0\x9f\x98\x80\","
		"\"b\":\"?,a?(??\",\"c\":\"\"}");
}

TEST(a_text_that_is_too_long_for_the_buffer_fails_it)
{
	struct buf out = BUF_INIT(8);
	struct json_build b;
	json_begin(&b);
	json_add_str(&b, "a", "longer than that");
	json_end(&b, &out);
	CHECK(!buf_ok(&out));
	buf_fini(&out);
}

RUN_TESTS(T(members_keep_their_order_and_containers_nest), T(counts_are_exact_up_to_63_bits),
	T(hundredths_have_no_more_digits_than_they_need),
	T(texts_hold_any_character_and_bytes_that_are_none_become_question_marks),
	T(a_text_that_is_too_long_for_the_buffer_fails_it))
