/* SPDX-License-Identifier: MIT
 * codec/member_table.h. */
#include "check.h"
#include "codec/member_table.h"

static struct span number_name(struct arena *a, int i)
{
	char name[40];

	/* Short and long names, on both sides of the hash's eight-byte words. */
	(void)snprintf(name, sizeof(name), i % 2 == 0 ? "%d" : "a_rather_long_name_%08d", i);
	return arena_copy(a, span_of(name));
}

TEST(rows_are_found_again_at_every_size)
{
	struct arena a = { 0 };
	struct member_table t;

	member_table_init(&t, &a);
	for (int i = 0; i < 2000; i++) {
		struct member *m = member_table_get(&t, number_name(&a, i));
		REQUIRE(m != NULL);
		CHECK_EQ_INT(t.n, i + 1);
		CHECK(!m->has_value && !m->has_type);
		m->offset = (size_t)i;
		for (int k = 0; k <= i; k += 1 + i / 20)
			CHECK_EQ_INT(member_table_get(&t, number_name(&a, k))->offset, k);
		CHECK_EQ_INT(t.n, i + 1);
	}
	arena_fini(&a);
}

TEST(rows_keep_the_order_of_the_document)
{
	struct arena a = { 0 };
	struct member_table t;

	member_table_init(&t, &a);
	for (int i = 99; i >= 0; i--)
		(void)member_table_get(&t, number_name(&a, i));
	for (int i = 0; i < 100; i++)
		CHECK(span_eq(t.rows[i].name, number_name(&a, 99 - i)));
	arena_fini(&a);
}

TEST(names_differ_by_length_and_by_nul)
{
	struct arena a = { 0 };
	struct member_table t;

	member_table_init(&t, &a);
	(void)member_table_get(&t, SPAN_LIT(""));
	(void)member_table_get(&t, SPAN_LIT("\0"));
	(void)member_table_get(&t, SPAN_LIT("\0\0"));
	(void)member_table_get(&t, SPAN_LIT("12345678"));
	(void)member_table_get(&t, SPAN_LIT("12345678\0"));
	CHECK_EQ_INT(t.n, 5);
	(void)member_table_get(&t, span_make(NULL, 0));
	CHECK_EQ_INT(t.n, 5);
	arena_fini(&a);
}

RUN_TESTS(T(rows_are_found_again_at_every_size), T(rows_keep_the_order_of_the_document),
	T(names_differ_by_length_and_by_nul))
