/* SPDX-License-Identifier: MIT
 * base/buf.h. */
#include "base/buf.h"
#include "check.h"

TEST(the_limit_is_reached_but_not_passed)
{
	struct buf b = BUF_INIT(5);

	buf_add(&b, "12345", 5);
	CHECK(buf_ok(&b));
	CHECK_EQ_STR(b.data, "12345");
	CHECK(b.cap <= b.limit + 1);
	buf_add_char(&b, '6');
	CHECK(!buf_ok(&b));
	CHECK_EQ_INT(b.len, 5);
	CHECK_EQ_STR(b.data, "12345");
	buf_fini(&b);
}

TEST(after_a_failure_nothing_is_added_until_cleared)
{
	struct buf b = BUF_INIT(4);

	buf_add_str(&b, "too long");
	buf_add_str(&b, "x");
	CHECK_EQ_INT(b.len, 0);
	CHECK(!buf_resize(&b, 1));
	CHECK(!buf_write_at(&b, 0, "x", 1));
	buf_clear(&b);
	buf_add_str(&b, "x");
	CHECK(buf_ok(&b));
	CHECK_EQ_STR(b.data, "x");
	buf_fini(&b);
}

TEST(many_small_appends_equal_one)
{
	struct buf b = BUF_INIT(10000);

	for (int i = 0; i < 1000; i++)
		buf_addf(&b, "%03d,", i);
	CHECK(buf_ok(&b));
	CHECK_EQ_INT(b.len, 4000);
	CHECK(memcmp(b.data + 3996, "999,", 5) == 0);
	buf_fini(&b);
}

TEST(formatted_text_fits_exactly_or_fails)
{
	struct buf b = BUF_INIT(4), c = BUF_INIT(3);

	buf_addf(&b, "%d", 1234);
	CHECK(buf_ok(&b));
	CHECK_EQ_STR(b.data, "1234");
	buf_addf(&c, "%d", 1234);
	CHECK(!buf_ok(&c));
	buf_fini(&b);
	buf_fini(&c);
}

struct small_budget {
	struct buf_memory memory; /* first */
	size_t most, asked;
};

static bool may_have(struct buf_memory *m, size_t cap)
{
	struct small_budget *s = (struct small_budget *)m;
	s->asked = cap;
	return cap <= s->most;
}

TEST(a_budget_is_asked_before_memory_is_taken)
{
	struct small_budget s = { .memory = { may_have }, .most = 128 };
	struct buf b = BUF_INIT(1000);

	b.memory = &s.memory;
	for (int i = 0; i < 127; i++)
		buf_add_char(&b, 'a');
	CHECK(buf_ok(&b));
	CHECK_EQ_INT(s.asked, 128);
	CHECK_EQ_INT(b.cap, 128);
	buf_add_char(&b, 'b');
	CHECK_EQ_INT(s.asked, 256);
	CHECK_EQ_INT(buf_full(&b), ERR_NO_MEMORY);
	CHECK_EQ_INT(b.len, 127);
	CHECK_EQ_INT(b.cap, 128);
	buf_fini(&b);
	CHECK(b.memory == &s.memory);
}

TEST(json_strings_are_escaped)
{
	struct buf b = BUF_INIT(1000);

	buf_add_json(&b, SPAN_LIT("a\"\\/\b\f\n\r\t\0\x1f\x7f\xc3\xa9"));
	CHECK_EQ_STR(b.data, "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\xc3\xa9\"");
	buf_clear(&b);
	buf_add_json(&b, span_make(NULL, 0));
	CHECK_EQ_STR(b.data, "\"\"");
	buf_fini(&b);
}

TEST(resize_fills_with_zeros_and_shrinks)
{
	struct buf b = BUF_INIT(100);

	buf_add_str(&b, "abcdef");
	CHECK(buf_resize(&b, 2));
	CHECK_EQ_STR(b.data, "ab");
	CHECK(buf_resize(&b, 6));
	CHECK(memcmp(b.data, "ab\0\0\0\0", 7) == 0);
	CHECK(buf_resize(&b, 100));
	CHECK(!buf_resize(&b, 101));
	CHECK(!buf_ok(&b));
	buf_fini(&b);
}

TEST(writing_behind_the_end_fills_the_gap)
{
	struct buf b = BUF_INIT(20);

	CHECK(buf_write_at(&b, 3, "xyz", 3));
	CHECK_EQ_INT(b.len, 6);
	CHECK(memcmp(b.data, "\0\0\0xyz", 7) == 0);
	CHECK(buf_write_at(&b, 1, "ab", 2));
	CHECK_EQ_INT(b.len, 6);
	CHECK(memcmp(b.data, "\0abxyz", 7) == 0);
	CHECK(buf_write_at(&b, 19, "z", 1));
	CHECK(!buf_write_at(&b, 20, "z", 1));
	buf_fini(&b);
}

TEST(an_offset_that_overflows_fails)
{
	struct buf b = BUF_INIT(20);

	CHECK(!buf_write_at(&b, SIZE_MAX, "xy", 2));
	CHECK(!buf_ok(&b));
	buf_fini(&b);
}

RUN_TESTS(T(the_limit_is_reached_but_not_passed), T(after_a_failure_nothing_is_added_until_cleared),
	T(many_small_appends_equal_one), T(formatted_text_fits_exactly_or_fails),
	T(a_budget_is_asked_before_memory_is_taken), T(resize_fills_with_zeros_and_shrinks),
	T(json_strings_are_escaped), T(resize_fills_with_zeros_and_shrinks),
	T(writing_behind_the_end_fills_the_gap), T(an_offset_that_overflows_fails))
