/* SPDX-License-Identifier: MIT
 * A store whose pages are mostly free becomes smaller step by step, whatever happens meanwhile. */
#include "base/clock.h"
#include "large_removal.h"
#include "store/sqlite/shrink.h"

#include <sys/stat.h>

#define STEP_PAGES 128
#define ROWS (10 * SET)

static uint64_t count(const char *pragma)
{
	return sql_pragma(sql_of(store)->writer.conn, pragma);
}

static uint64_t pages(void)
{
	return count("PRAGMA page_count");
}

static int what_is_left(void)
{
	return atomic_load(&sql_of(store)->shrink);
}

static enum err step(void)
{
	struct sql_store *st = sql_of(store);
	mutex_lock(&st->lock);
	enum err e = sql_shrink_step(st);
	mutex_unlock(&st->lock);
	return e;
}

static uint64_t file_bytes(void)
{
	struct stat file;
	CHECK(stat(path, &file) == 0);
	return (uint64_t)file.st_size;
}

/* Frees most of the store; the thread does nothing more. */
static void make_room(void)
{
	stop_reclaimer();
	fill(ROWS, 1000);
	CHECK_ERR(put_row("a"), ERR_OK);
	CHECK_ERR(remove_all(), ERR_OK);
	while (info().reclaiming)
		CHECK_ERR(reclaim_slice(), ERR_OK);
}

static void begin_roomy(void)
{
	begin();
	make_room();
}

static void is_whole(void)
{
	CHECK(has_row("a"));
	CHECK_ERR(store_check(store, NULL, NULL, NULL), ERR_OK);
}

TEST(each_step_moves_a_few_pages_and_others_commit_between)
{
	unsigned steps = 0;
	begin_roomy();
	uint64_t before = pages();
	CHECK_EQ_INT(what_is_left(), SHRINK_MOVE);
	while (what_is_left() == SHRINK_MOVE) {
		uint64_t n = pages();
		CHECK_ERR(step(), ERR_OK);
		CHECK(pages() < n && n - pages() <= STEP_PAGES + 1);
		CHECK_ERR(put_row(++steps % 2 ? "b" : "c"), ERR_OK);
	}
	CHECK(steps >= before / 2 / STEP_PAGES);
	CHECK(pages() < before / 2);
	/* Some stay for what is written next. */
	CHECK(count("PRAGMA freelist_count") > 200);
	CHECK_EQ_INT(what_is_left(), SHRINK_CUT);
	CHECK_ERR(step(), ERR_OK);
	CHECK_EQ_INT(what_is_left(), SHRINK_DONE);
	CHECK_EQ_INT(file_bytes(), pages() * 4096);
	is_whole();
	end();
}

TEST(a_store_with_few_free_pages_stays)
{
	begin();
	stop_reclaimer();
	fill(SET, 400);
	CHECK_ERR(remove_all(), ERR_OK);
	while (info().reclaiming)
		CHECK_ERR(reclaim_slice(), ERR_OK);
	uint64_t before = pages();
	CHECK(count("PRAGMA freelist_count") > 50);
	CHECK_EQ_INT(what_is_left(), SHRINK_DONE);
	CHECK_ERR(step(), ERR_OK);
	CHECK_EQ_INT(pages(), before);
	end();
}

TEST(rows_that_go_one_by_one_are_seen_too)
{
	char key[16];
	begin();
	stop_reclaimer();
	fill(3 * SET, 1000);
	CHECK_EQ_INT(what_is_left(), SHRINK_DONE);
	for (int i = 0; i < 3 * SET && what_is_left() != SHRINK_MOVE; i++) {
		(void)snprintf(key, sizeof(key), "%08d", i);
		CHECK_ERR(apply(removal(row_at("q", key), 0)), ERR_OK);
	}
	CHECK_EQ_INT(what_is_left(), SHRINK_MOVE);
	CHECK_ERR(step(), ERR_OK);
	end();
}

TEST(a_step_that_fails_changes_nothing)
{
	unsigned failed = 0;
	begin_roomy();
	for (unsigned n = 1; what_is_left() == SHRINK_MOVE && n < 5000; n++) {
		uint64_t before = pages();
		calls_strike(CALLS_FAIL, n % 2 ? CALLS_STATEMENT : CALLS_MEMORY, true,
			n % (n % 2 ? 13 : 40) + 1, n % 2 ? SQLITE_IOERR : ENOMEM);
		enum err e = step();
		(void)calls_stop();
		failed += e != ERR_OK;
		CHECK(e == ERR_OK || pages() == before);
		if (n % 16 == 0)
			is_whole();
	}
	CHECK(failed > 5);
	CHECK_EQ_INT(what_is_left(), SHRINK_CUT);
	is_whole();
	end();
}

TEST(a_killed_server_goes_on_at_the_next_start)
{
	begin_roomy();
	CHECK_ERR(step(), ERR_OK);
	be_killed();
	CHECK_ERR(open_store(0), ERR_OK);
	CHECK_EQ_INT(what_is_left(), SHRINK_MOVE);
	is_whole();
	end();
}

/* Waits until the thread has put the next step off, for longer than after a step. */
static void wait_for_a_turn_without_a_step(void)
{
	struct sql_store *st = sql_of(store);
	bool is_off = false;
	while (!is_off) {
		(void)usleep(1000);
		mutex_lock(&st->lock);
		is_off = st->reclaimer.shrink_at > clock_mono_us() + 50000;
		mutex_unlock(&st->lock);
	}
}

TEST(the_thread_waits_for_held_views)
{
	struct store_view *v;
	begin();
	sql_of(store)->reclaimer.shrink_after_us = 1000;
	fill(ROWS, 1000);
	CHECK_ERR(put_row("a"), ERR_OK);
	CHECK_ERR(store_view_hold(store, &v), ERR_OK);
	CHECK_ERR(remove_all(), ERR_OK);
	wait_until_reclaimed();
	uint64_t before = file_bytes();
	while (what_is_left() != SHRINK_MOVE)
		(void)usleep(1000);
	uint64_t log = info().log_bytes;
	wait_for_a_turn_without_a_step();
	CHECK_EQ_INT(info().log_bytes, log);
	struct item it = { 0 };
	CHECK_ERR(store_get(store, v, doomed, WANT_ATTRS, &it), ERR_OK);
	item_fini(&it);
	store_view_close(store, v);
	while (what_is_left() != SHRINK_DONE)
		(void)usleep(1000);
	CHECK(file_bytes() < before / 2);
	is_whole();
	end();
}

static bool on_step(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	return done <= total;
}

/* As stores were made before. */
static void forget_maps(void)
{
	struct sql_conn *c;
	close_store();
	CHECK_ERR(sql_conn_open(path, SQL_MODE_WRITER, &c), ERR_OK);
	CHECK_ERR(sql_exec(c, "PRAGMA auto_vacuum=NONE; VACUUM"), ERR_OK);
	sql_conn_close(c);
	CHECK_ERR(open_store(0), ERR_OK);
	CHECK(!sql_can_shrink(sql_of(store)->writer.conn));
}

TEST(a_store_of_before_shrinks_from_its_first_compaction_on)
{
	begin();
	forget_maps();
	make_room();
	CHECK_EQ_INT(what_is_left(), SHRINK_DONE);
	CHECK_ERR(store_compact(store, on_step, NULL, NULL), ERR_OK);
	is_whole();
	fill(ROWS, 1000);
	CHECK_ERR(remove_all(), ERR_OK);
	while (info().reclaiming)
		CHECK_ERR(reclaim_slice(), ERR_OK);
	CHECK_EQ_INT(what_is_left(), SHRINK_MOVE);
	CHECK_ERR(step(), ERR_OK);
	is_whole();
	end();
}

TEST(a_store_of_before_without_free_pages_is_compacted_too)
{
	begin();
	forget_maps();
	CHECK_ERR(put_row("a"), ERR_OK);
	CHECK_ERR(store_compact(store, on_step, NULL, NULL), ERR_OK);
	CHECK(sql_can_shrink(sql_of(store)->writer.conn));
	is_whole();
	end();
}

/* The log has all pages of the compact store once, and the file those of before. */
static void compact_beside(bool held)
{
	struct store_view *v;
	struct item it = { 0 };
	begin();
	sql_of(store)->reclaimer.shrink_after_us = 1000;
	fill(ROWS, 1000);
	CHECK_ERR(put_row("a"), ERR_OK);
	CHECK_ERR(held ? store_view_hold(store, &v) : store_view_open(store, &v), ERR_OK);
	uint64_t seen = doomed;
	CHECK_ERR(store_get(store, v, seen, WANT_ATTRS, &it), ERR_OK);
	item_fini(&it);
	CHECK_ERR(remove_all(), ERR_OK);
	fill(3 * SET, 1000);
	CHECK_ERR(store_compact(store, on_step, NULL, NULL), ERR_OK);
	CHECK_EQ_INT(what_is_left(), SHRINK_CUT);
	uint64_t file = file_bytes(), log = info().log_bytes;
	CHECK_ERR(store_get(store, v, seen, WANT_ATTRS, &it), ERR_OK);
	item_fini(&it);
	store_view_close(store, v);
	while (what_is_left() != SHRINK_DONE)
		(void)usleep(1000);
	CHECK(log > 1 << 20);
	CHECK(info().log_bytes < log / 4);
	CHECK(file_bytes() < file / 2);
	is_whole();
	end();
}

TEST(the_log_of_a_compaction_beside_a_reader_is_given_back)
{
	compact_beside(false);
}

TEST(the_log_of_a_compaction_beside_a_held_view_is_given_back)
{
	compact_beside(true);
}

/* clang-format off */
RUN_TESTS(
	T(each_step_moves_a_few_pages_and_others_commit_between),
	T(a_store_with_few_free_pages_stays),
	T(rows_that_go_one_by_one_are_seen_too),
	T(a_step_that_fails_changes_nothing),
	T(a_killed_server_goes_on_at_the_next_start),
	T(the_thread_waits_for_held_views),
	T(a_store_of_before_shrinks_from_its_first_compaction_on),
	T(a_store_of_before_without_free_pages_is_compacted_too),
	T(the_log_of_a_compaction_beside_a_reader_is_given_back),
	T(the_log_of_a_compaction_beside_a_held_view_is_given_back))
/* clang-format on */
