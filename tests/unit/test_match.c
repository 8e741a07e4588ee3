/* SPDX-License-Identifier: MIT
 * Conditions of rows, at their bound. */
#include "check.h"
#include "fs/match.h"

#define KEPT 4096   /* as in match.c */
#define REFUSALS 64 /* as there */

struct rows {
	uint64_t gone; /* this one */
	unsigned asked;
};

static bool is_gone(void *arg, uint64_t row_id)
{
	struct rows *rows = arg;
	rows->asked++;
	return row_id == rows->gone;
}

static struct matches *full(struct rows *rows)
{
	struct matches *m = matches_new();
	CHECK(m != NULL);
	for (uint64_t id = 1; id <= KEPT; id++)
		CHECK(matches_set(m, id, 7, is_gone, rows));
	CHECK(rows->asked == 0);
	return m;
}

TEST(a_refusal_seldom_asks_for_the_rows)
{
	struct rows rows = { 0 };
	struct matches *m = full(&rows);
	for (unsigned i = 1; i <= 3 * REFUSALS; i++) {
		CHECK(!matches_set(m, KEPT + 1, 7, is_gone, &rows));
		CHECK(rows.asked == KEPT * ((i + REFUSALS - 1) / REFUSALS));
	}
	CHECK(matches_set(m, 1, 8, is_gone, &rows)); /* another one of the same row */
	CHECK(rows.asked == KEPT * 3);
	CHECK(matches_get(m, 1) == 8 && matches_get(m, KEPT) == 7);
	CHECK(matches_get(m, KEPT + 1) == -1);
	matches_free(m);
}

TEST(rows_that_went_unnoticed_make_room_in_the_end)
{
	struct rows rows = { 0 };
	struct matches *m = full(&rows);
	CHECK(!matches_set(m, KEPT + 1, 7, is_gone, &rows));
	rows.gone = 5;
	for (unsigned i = 1; i < REFUSALS; i++)
		CHECK(!matches_set(m, KEPT + 1, 7, is_gone, &rows));
	CHECK(matches_set(m, KEPT + 1, 7, is_gone, &rows));
	CHECK(matches_get(m, 5) == -1 && matches_get(m, KEPT + 1) == 7);
	matches_free(m);
}

TEST(what_is_known_to_be_gone_makes_room_at_once)
{
	struct rows rows = { 0 };
	struct matches *m = full(&rows);
	CHECK(!matches_set(m, KEPT + 1, 7, is_gone, &rows));
	CHECK(rows.asked == KEPT);
	matches_drop(m, 9);
	CHECK(matches_set(m, KEPT + 1, 7, is_gone, &rows));
	CHECK(rows.asked == KEPT);
	CHECK(!matches_set(m, KEPT + 2, 7, is_gone, &rows));
	CHECK(rows.asked == KEPT);
	rows.gone = 10;
	matches_many_gone(m);
	CHECK(matches_set(m, KEPT + 2, 7, is_gone, &rows));
	CHECK(rows.asked == 2 * KEPT && matches_get(m, 10) == -1);
	matches_free(m);
}

TEST(none_is_dropped_where_there_is_none)
{
	struct rows rows = { 0 };
	struct matches *m = matches_new();
	REQUIRE(m != NULL);
	matches_drop(m, 1);
	CHECK(matches_set(m, 1, 7, is_gone, &rows));
	matches_drop(m, 0);
	matches_drop(m, 2);
	CHECK(matches_get(m, 1) == 7);
	matches_drop(m, 1);
	CHECK(matches_get(m, 1) == -1 && matches_get(m, 0) == -1);
	matches_free(m);
}

/* clang-format off */
RUN_TESTS(
	T(a_refusal_seldom_asks_for_the_rows),
	T(rows_that_went_unnoticed_make_room_in_the_end),
	T(what_is_known_to_be_gone_makes_room_at_once),
	T(none_is_dropped_where_there_is_none))
/* clang-format on */
