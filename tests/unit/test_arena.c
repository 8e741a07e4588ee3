/* SPDX-License-Identifier: MIT
 * base/arena.h. */
#include "base/arena.h"
#include "check.h"

TEST(allocations_are_aligned_and_distinct)
{
	struct arena a = { 0 };
	char *last = NULL;

	for (size_t n = 0; n < 300; n++) {
		char *p = arena_alloc(&a, n);
		REQUIRE(p != NULL);
		CHECK((uintptr_t)p % 16 == 0);
		CHECK(p != last);
		memset(p, 0xa5, n);
		last = p;
	}
	arena_fini(&a);
	CHECK(a.head == NULL);
}

TEST(earlier_memory_stays_when_blocks_are_added)
{
	struct arena a = { 0 };
	struct span s = arena_copy(&a, SPAN_LIT("kept"));

	for (int i = 0; i < 100; i++)
		memset(arena_alloc(&a, 4000), i, 4000);
	CHECK_EQ_STR(s.p, "kept");
	arena_fini(&a);
}

TEST(a_copy_has_a_nul_behind_it_also_when_empty)
{
	struct arena a = { 0 };
	struct span s = arena_copy(&a, span_make("abc", 2));
	struct span none = arena_copy(&a, span_make(NULL, 0));

	CHECK_EQ_STR(s.p, "ab");
	CHECK_EQ_INT(s.n, 2);
	REQUIRE(none.p != NULL);
	CHECK_EQ_STR(none.p, "");
	arena_fini(&a);
}

TEST(reset_reuses_the_newest_block)
{
	struct arena a = { 0 };
	void *big, *again;

	(void)arena_alloc(&a, 10);
	big = arena_alloc(&a, 100000);
	arena_reset(&a);
	again = arena_alloc(&a, 100000);
	CHECK(big == again);
	arena_fini(&a);
}

TEST(impossible_sizes_give_null)
{
	struct arena a = { 0 };

	CHECK(arena_alloc(&a, SIZE_MAX) == NULL);
	CHECK(arena_alloc(&a, SIZE_MAX - 8) == NULL);
	CHECK(arena_alloc(&a, 16) != NULL);
	arena_fini(&a);
}

RUN_TESTS(T(allocations_are_aligned_and_distinct), T(earlier_memory_stays_when_blocks_are_added),
	T(a_copy_has_a_nul_behind_it_also_when_empty), T(reset_reuses_the_newest_block),
	T(impossible_sizes_give_null))
