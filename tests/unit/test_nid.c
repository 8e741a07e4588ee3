/* SPDX-License-Identifier: MIT
 * Node ids: no two contents have the same one, however many versions a row had. */
#include "check.h"
#include "fs/core/nid.h"

#include <stdlib.h>

#define LOW NID_GENERATION_MASK
#define TOP_ID ((UINT64_C(1) << STORE_ID_BITS) - 1)

static const uint64_t ids[] = { 1, STORE_ID_FIRST, 1025, UINT64_C(1) << 39, TOP_ID };
static const uint64_t generations[] = { 0, 1, LOW - 1, LOW, LOW + 1, LOW + 2, 2 * LOW + 1,
	UINT64_C(1) << 22, (UINT64_C(1) << 22) + 1, UINT64_C(0xffffffff), UINT64_C(1) << 32,
	(UINT64_C(1) << 32) + 1, INT64_MAX };

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

TEST(every_version_has_a_node_of_its_own_that_tells_the_row)
{
	uint64_t all[ARRAY_LEN(ids) * ARRAY_LEN(generations)];
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		for (size_t k = 0; k < ARRAY_LEN(generations); k++) {
			uint64_t nid = nid_make(ids[i], generations[k]);
			CHECK(nid_id(nid) == ids[i]);
			CHECK(nid == nid_make(ids[i], generations[k]));
			CHECK(!nid_is_staged(nid) && !nid_is_snapshot(nid));
			CHECK(nid_is_indirect(nid) == (generations[k] > LOW));
			all[n++] = nid;
		}
	}
	qsort(all, n, sizeof(all[0]), compare);
	for (size_t i = 1; i < n; i++)
		CHECK(all[i] != all[i - 1]);
}

TEST(a_snapshot_of_any_number_tells_it)
{
	static const uint32_t numbers[] = { 1, LOW, LOW + 1, UINT32_MAX };
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		uint64_t nid = nid_in_snapshot(numbers[i], TOP_ID);
		CHECK(nid_is_snapshot(nid) && !nid_is_staged(nid));
		CHECK(nid_snapshot(nid) == numbers[i] && nid_id(nid) == TOP_ID);
	}
}

TEST(a_number_that_nobody_was_given_is_of_no_item)
{
	CHECK(nid_id(NID_INDIRECT | (NID_INDIRECT_MAX - 1)) == 0);
	CHECK(nid_id(NID_INDIRECT | NID_ID_MASK) == 0);
}

TEST(the_nodes_of_other_kinds_are_never_indirect)
{
	CHECK(!nid_is_indirect(nid_make_staged(TOP_ID, LOW)));
	CHECK(nid_id(nid_make_staged(TOP_ID, LOW)) == TOP_ID);
	CHECK(!nid_is_indirect(NID_QUERY | 5));
	CHECK(!nid_is_indirect(nid_of_dir_control(DIR_CONTROL_QUERY, TOP_ID)));
	uint64_t rows = nid_of_dir_control(DIR_CONTROL_ROWS_CSV, TOP_ID);
	for (uint64_t n = 0; n < 3 * NID_MOMENTS; n += NID_MOMENTS / 2) {
		uint64_t at = nid_at_moment(rows, n);
		CHECK(nid_has_moment(at) && nid_base(at) == rows && nid_id(at) == TOP_ID);
		CHECK(nid_dir_control(at) == DIR_CONTROL_ROWS_CSV);
		CHECK(nid_kind(at) == NID_KIND_DIR_CONTROL);
		CHECK(nid_base(nid_at_moment(NID_ERRORS, n)) == NID_ERRORS);
		CHECK(nid_kind(nid_at_moment(NID_ERRORS, n)) == NID_KIND_CONTROL);
	}
	CHECK(!nid_has_moment(rows) && !nid_has_moment(NID_ERRORS));
	CHECK(!nid_has_moment(nid_make(TOP_ID, NID_GENERATION_MASK)));
	CHECK(!nid_has_moment(nid_in_snapshot(0x3fffff, TOP_ID)));
}

/* clang-format off */
RUN_TESTS(
	T(every_version_has_a_node_of_its_own_that_tells_the_row),
	T(a_snapshot_of_any_number_tells_it),
	T(a_number_that_nobody_was_given_is_of_no_item),
	T(the_nodes_of_other_kinds_are_never_indirect))
/* clang-format on */
