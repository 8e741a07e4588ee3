/* SPDX-License-Identifier: MIT
 * A directory that is removed with more below it than one commit takes away: its space is reclaimed in
 * slices, whatever happens meanwhile. */
#include "large_removal.h"

#include <errno.h>
#include <sys/stat.h>

static bool is_there(uint64_t id)
{
	struct item it = { 0 };
	enum err e = store_get(store, NULL, id, WANT_ATTRS, &it);
	item_fini(&it);
	CHECK(e == ERR_OK || e == ERR_NOT_FOUND);
	return e == ERR_OK;
}

TEST(others_commit_between_the_slices_and_the_log_stays_short)
{
	uint64_t log = 0;
	unsigned between = 0;
	begin();
	fill(30 * SET, 1000);
	struct store_info before = info();
	CHECK_ERR(remove_all(), ERR_OK);
	CHECK(info().reclaiming && !is_there(doomed));
	/* A commit while the log is copied keeps the log from beginning anew.  So the test lets a few slices
	 * go by between two commits, however the threads are scheduled. */
	for (uint64_t slices = before.slices; info().reclaiming;) {
		struct store_info now = info();
		log = now.log_bytes > log ? now.log_bytes : log;
		if (now.slices < slices + 3) {
			(void)usleep(200);
			continue;
		}
		CHECK_ERR(put_row("a"), ERR_OK);
		between++;
		slices = now.slices;
	}
	CHECK(info().slices - before.slices >= 25); /* of 1,024 at most */
	CHECK(between >= 3);
	CHECK(log < 24 << 20);
	CHECK_EQ_INT(sql_of(store)->readers.removals.begun, 1);
	end();
}

TEST(reclaiming_goes_on_after_a_kill_and_readers_see_nothing_of_it)
{
	begin();
	stop_reclaimer();
	fill(5 * SET, 10);
	CHECK_ERR(remove_all(), ERR_OK);
	CHECK_ERR(reclaim_slice(), ERR_OK);
	CHECK_ERR(reclaim_slice(), ERR_OK);
	CHECK(info().reclaiming);
	be_killed();
	CHECK_ERR(open_store(0), ERR_OK);
	stop_reclaimer();
	CHECK(info().reclaiming && !is_there(doomed));
	CHECK_ERR(store_check(store, NULL, NULL, NULL), ERR_OK);
	close_store();
	CHECK_ERR(open_store(STORE_OPEN_READ_ONLY), ERR_OK);
	CHECK(info().reclaiming && !is_there(doomed) && is_there(partition));
	CHECK_ERR(store_check(store, NULL, NULL, NULL), ERR_OK);
	open_again();
	wait_until_reclaimed();
	CHECK_ERR(put_row("a"), ERR_OK);
	open_again();
	CHECK(!info().reclaiming && has_row("a"));
	end();
}

/* Each slice fails in another place. */
static void fail_each(unsigned kind, int error, unsigned up_to)
{
	begin();
	stop_reclaimer();
	fill(SET, 10);
	uint64_t dir = make(ITEM_FOLDER, named(doomed, "folder"));
	static char bytes[3 << 20];
	for (const char *name = "abc"; *name; name++) {
		char key[2] = { *name, 0 };
		uint64_t id = make(ITEM_FILE, named(dir, key));
		struct change c = { .op = CHANGE_WRITE,
			.at = { .id = id },
			.version = ++version,
			.body = span_make(bytes, sizeof(bytes)) };
		CHECK_ERR(apply(c), ERR_OK);
	}
	CHECK_ERR(remove_all(), ERR_OK);
	unsigned failed = 0;
	for (unsigned n = 1; sql_has_to_reclaim(sql_of(store)) && n < 5000; n++) {
		sql_of(store)->slice_items = 8;
		calls_strike(CALLS_FAIL, kind, true, n * 7 % up_to + 1, error);
		enum err e = reclaim_slice();
		(void)calls_stop();
		failed += e != ERR_OK;
		CHECK(!is_there(doomed));
		if (n % 16 == 0)
			CHECK_ERR(store_check(store, NULL, NULL, NULL), ERR_OK);
	}
	CHECK(failed > 5);
	CHECK(!info().reclaiming);
	CHECK_EQ_INT(info().file_bytes, 0);
	end();
}

TEST(a_slice_that_fails_is_done_later)
{
	fail_each(CALLS_STATEMENT, SQLITE_IOERR, 60);
	fail_each(CALLS_MEMORY, ENOMEM, 300);
}

TEST(a_large_file_goes_in_pieces)
{
	static char bytes[8 << 20];
	begin();
	stop_reclaimer();
	uint64_t id = make(ITEM_FILE, named(partition, "large"));
	struct change c = { .op = CHANGE_WRITE,
		.at = { .id = id },
		.version = ++version,
		.body = span_make(bytes, sizeof(bytes)) };
	CHECK_ERR(apply(c), ERR_OK);
	CHECK_ERR(apply(removal(named(partition, "large"), 0)), ERR_OK);
	CHECK(!is_there(id) && info().reclaiming);
	CHECK_EQ_INT(info().file_bytes, sizeof(bytes));
	CHECK_ERR(store_check(store, NULL, NULL, NULL), ERR_OK);
	while (info().reclaiming)
		CHECK_ERR(reclaim_slice(), ERR_OK);
	CHECK(info().slices >= 2);
	CHECK_EQ_INT(info().file_bytes, 0);
	end();
}

TEST(the_next_commit_starts_what_could_not_be_started)
{
	begin();
	fill(SET, 10);
	calls_strike_on(CALLS_FAIL, CALLS_THREAD, false, 1, EAGAIN);
	CHECK_ERR(remove_all(), ERR_OK);
	(void)calls_stop();
	CHECK(info().reclaiming && !sql_of(store)->reclaimer.started);
	CHECK_ERR(put_row("a"), ERR_OK);
	wait_until_reclaimed();
	end();
}

TEST(under_a_held_view_the_log_does_not_grow_beyond_its_bound)
{
	struct store_view *v;
	struct stat log;
	begin();
	fill(SET, 10);
	CHECK_ERR(store_view_hold(store, &v), ERR_OK);
	int fd = sql_of(store)->wal_fd;
	CHECK(fstat(fd, &log) == 0 && ftruncate(fd, (off_t)SQL_LOG_BYTES) == 0);
	CHECK_ERR(remove_all(), ERR_OK);
	(void)usleep(20000);
	CHECK_EQ_INT(info().slices, 0);
	CHECK(ftruncate(fd, log.st_size + (1 << 20)) == 0);
	wait_until_reclaimed();
	while (info().slices == 0) /* a slice is counted after its commit */
		(void)usleep(1000);
	store_view_close(store, v);
	end();
}

/* clang-format off */
RUN_TESTS(
	T(others_commit_between_the_slices_and_the_log_stays_short),
	T(reclaiming_goes_on_after_a_kill_and_readers_see_nothing_of_it),
	T(a_slice_that_fails_is_done_later),
	T(a_large_file_goes_in_pieces),
	T(the_next_commit_starts_what_could_not_be_started),
	T(under_a_held_view_the_log_does_not_grow_beyond_its_bound))
/* clang-format on */
