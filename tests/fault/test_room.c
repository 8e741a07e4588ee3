/* SPDX-License-Identifier: MIT
 * A disk that is nearly full: which changes are refused while there is still room to read, to
 * remove and to end what has begun. */
#include "large_removal.h"
#include "shared_commit.h"
#include "store/sqlite/shrink.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/statvfs.h>

static _Atomic int free_mib = -1; /* of the disk; -1: what it has; -2: it is not told */
static uid_t user;                /* who the process seems to run as */

int fstatvfs(int fd, struct statvfs *ret)
{
	static int (*real)(int, struct statvfs *);
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "fstatvfs64");
	if (free_mib == -2)
		return -1;
	int rc = real(fd, ret);
	if (free_mib >= 0) {
		ret->f_frsize = 1 << 20;
		ret->f_bfree = ret->f_bavail = (fsblkcnt_t)free_mib;
	}
	return rc;
}

uid_t geteuid(void)
{
	return user;
}

static struct span zeros(size_t n)
{
	static char body[1 << 20];
	return span_make(body, n);
}

/* So that it is asked. */
static void fill_disk(int mib)
{
	free_mib = mib;
	atomic_store(&sql_of(store)->roomy_until_us, 0);
}

TEST(a_shared_commit_without_room_is_refused_to_each)
{
	struct writer w[3];
	begin();
	gather(w);
	fill_disk(0);
	(void)calls_stop();
	join(w);
	CHECK_ERR(w[1].result, ERR_NO_SPACE);
	CHECK_ERR(w[2].result, ERR_NO_SPACE);
	fill_disk(-1);
	CHECK_ERR(put_row("second"), ERR_OK);
	CHECK(has_row("first") && !has_row("third"));
	end();
}

TEST(a_small_set_is_not_refused_for_a_large_one_behind_it)
{
	struct writer w[3];
	begin();
	gather_with(w, 1 << 20);
	fill_disk(2);
	(void)calls_stop();
	join(w);
	CHECK_ERR(w[1].result, ERR_OK);
	CHECK_ERR(w[2].result, ERR_NO_SPACE);
	fill_disk(-1);
	end();
}

TEST(a_refusal_says_what_is_free_and_what_is_kept)
{
	begin();
	fill_disk(1);
	struct change c = row("p", "a");
	CHECK_ERR(store_apply(store, &c, 1, false, &detail), ERR_NO_SPACE);
	CHECK(strstr(detail.text, " 1048576 of ") != NULL);
	CHECK(strstr(detail.text, " 1048576 are kept so that rows can still be removed.") != NULL);
	fill_disk(-1);
	end();
}

TEST(space_inside_the_store_is_as_good_as_on_the_disk)
{
	begin();
	for (int i = 0; i < 8; i++) {
		char key[8];
		(void)snprintf(key, sizeof(key), "%d", i);
		CHECK_ERR(apply(put(ITEM_ROW, row_at("p", key), zeros(1 << 20))), ERR_OK);
	}
	fill_disk(0);
	CHECK_ERR(put_row("more"), ERR_NO_SPACE);
	CHECK_ERR(store_room(store, 2, NULL), ERR_NO_SPACE);
	for (int i = 0; i < 8; i++) {
		char key[8];
		(void)snprintf(key, sizeof(key), "%d", i);
		CHECK_ERR(remove_row(key), ERR_OK);
	}
	CHECK_ERR(put_row("more"), ERR_OK);
	CHECK_ERR(store_room(store, 2, NULL), ERR_OK);
	fill_disk(-2);
	CHECK_ERR(put_row("untold"), ERR_OK);
	fill_disk(-1);
	end();
}

/* Nobody else reclaims it here: the writer who needs it does. */
TEST(what_is_removed_with_its_directory_gives_room_at_once)
{
	begin();
	uint64_t q =
		make(ITEM_PARTITION, (struct item_ref){ .parent = table, .key = SPAN_LIT("q") });
	for (int i = 0; i < 8; i++) {
		char key[8];
		(void)snprintf(key, sizeof(key), "%d", i);
		CHECK_ERR(apply(put(ITEM_ROW, row_at("q", key), zeros(1 << 20))), ERR_OK);
	}
	sql_reclaimer_stop(sql_of(store));
	fill_disk(0);
	struct change large = put(ITEM_ROW, row_at("p", "large"), zeros(1 << 20));
	CHECK_ERR(apply(large), ERR_NO_SPACE);
	CHECK_ERR(apply(removal((struct item_ref){ .id = q }, CHANGE_RECURSIVE)), ERR_OK);
	large.version = ++version;
	CHECK_ERR(apply(large), ERR_OK);
	CHECK_ERR(store_room(store, 1 << 20, NULL), ERR_OK);
	fill_disk(-1);
	end();
}

/* Of 1 MiB, and another one each time, or SQLite would write nothing. */
static enum err overwrite(const char *key)
{
	static char body[1 << 20];
	memset(body, (int)(version % 100), sizeof(body));
	return apply(put(ITEM_ROW, row_at("p", key), span_make(body, sizeof(body))));
}

/* The file of the log keeps the size that it had, unless it is cut. */
TEST(the_log_gives_way_where_room_is_short)
{
	begin();
	for (int i = 0; i < 4; i++)
		CHECK_ERR(overwrite("a"), ERR_OK);
	CHECK(sql_log_bytes(sql_of(store)) > 4 << 20);
	fill_disk(2);
	CHECK_ERR(put_row("b"), ERR_OK);
	CHECK(sql_log_bytes(sql_of(store)) < 1 << 20);
	fill_disk(-1);
	end();
}

TEST(what_is_kept_for_the_superuser_is_not_room_for_others)
{
	begin();
	user = 1000;
	fill_disk(0);
	CHECK_ERR(put_row("a"), ERR_NO_SPACE);
	user = 0;
	CHECK_ERR(put_row("a"), ERR_NO_SPACE);
	fill_disk(-1);
	user = 1000;
	CHECK_ERR(put_row("a"), ERR_OK);
	user = 0;
	end();
}

/* So little that it is no reserve, but enough for a small row. */
TEST(some_space_inside_the_store_is_room_for_a_little)
{
	unsigned refused = 0;
	begin();
	CHECK_ERR(apply(put(ITEM_ROW, row_at("p", "x"), zeros(300 << 10))), ERR_OK);
	CHECK_ERR(remove_row("x"), ERR_OK);
	fill_disk(0);
	CHECK_ERR(put_row("a"), ERR_OK);
	/* Where that cannot be found out there is none. */
	for (unsigned n = 1; n <= 8; n++) {
		calls_strike_on(CALLS_FAIL, n % 2 ? CALLS_STATEMENT : CALLS_MEMORY, true,
			(n + 1) / 2, n % 2 ? SQLITE_NOMEM : ENOMEM);
		enum err e = put_row("b");
		(void)calls_stop();
		CHECK(e == ERR_OK || e == ERR_NO_SPACE || e == ERR_NO_MEMORY);
		refused += e == ERR_NO_SPACE;
	}
	CHECK(refused > 0);
	fill_disk(-1);
	CHECK_ERR(put_row("b"), ERR_OK);
	end();
}

TEST(under_a_held_view_there_is_room_while_the_log_can_be_copied)
{
	struct store_view *v = NULL;
	begin();
	CHECK_ERR(store_view_hold(store, &v), ERR_OK);
	for (int i = 0; i < 12; i++)
		CHECK_ERR(overwrite("r"), ERR_OK);
	CHECK_ERR(put_row("b"), ERR_OK);
	fill_disk(8);
	CHECK_ERR(put_row("a"), ERR_OK);
	CHECK_ERR(remove_row("a"), ERR_OK);
	fill_disk(0);
	CHECK_ERR(put_row("a"), ERR_NO_SPACE);
	CHECK_ERR(remove_row("b"), ERR_NO_SPACE);
	store_view_close(store, v);
	CHECK_ERR(remove_row("b"), ERR_OK);
	fill_disk(-1);
	CHECK_ERR(put_row("a"), ERR_OK);
	end();
}

/* What cannot be looked at is no reason to lose anything. */
TEST(a_disk_that_cannot_be_looked_at_refuses_or_not)
{
	begin();
	fill_disk(1);
	for (unsigned n = 1; n <= 8; n++) {
		calls_strike(CALLS_FAIL, CALLS_LOOK, true, n, EIO);
		enum err e = put_row("a");
		(void)calls_stop();
		CHECK(e == ERR_OK || e == ERR_NO_SPACE || e == ERR_IO);
	}
	fill_disk(-1);
	CHECK_ERR(put_row("a"), ERR_OK);
	end();
}

TEST(what_may_use_the_reserve_says_so_of_each_change)
{
	struct change c[2];
	begin();
	for (int i = 0; i < 4; i++) {
		c[0] = row("p", "a");
		c[1] = row("p", "b");
		c[0].flags = i & 1 ? CHANGE_RESERVED : 0;
		c[1].flags = i & 2 ? CHANGE_RESERVED : 0;
		CHECK_ERR(store_apply(store, c, 2, false, NULL), ERR_OK);
		changes_fini(c, 2);
	}
	end();
}

TEST(a_large_document_that_changes_its_place_needs_room)
{
	begin();
	CHECK_ERR(put_row("a"), ERR_OK);
	fill_disk(0);
	struct change c = move(row_at("p", "a"), row_at("p", "b"));
	c.body = zeros(100 << 10);
	CHECK_ERR(apply(c), ERR_NO_SPACE);
	c.body = zeros(10);
	CHECK_ERR(apply(c), ERR_OK);
	fill_disk(-1);
	end();
}

TEST(a_store_that_is_read_has_room_for_whatever_is_not_written)
{
	begin();
	close_store();
	CHECK_ERR(open_store(STORE_OPEN_READ_ONLY), ERR_OK);
	CHECK_ERR(store_room(store, UINT64_C(1) << 40, NULL), ERR_OK);
	end();
}

TEST(without_room_for_the_log_a_store_stays_as_large_as_it_is)
{
	begin();
	struct sql_store *st = sql_of(store);
	stop_reclaimer();
	fill(3 * SET, 1000);
	CHECK_ERR(remove_all(), ERR_OK);
	while (info().reclaiming)
		CHECK_ERR(reclaim_slice(), ERR_OK);
	CHECK_EQ_INT(atomic_load(&st->shrink), SHRINK_MOVE);
	uint64_t pages = sql_pragma(st->writer.conn, "PRAGMA page_count");
	fill_disk(1);
	CHECK_ERR(sql_shrink_now(st), ERR_NO_SPACE);
	CHECK_EQ_INT(sql_pragma(st->writer.conn, "PRAGMA page_count"), pages);
	fill_disk(1000);
	CHECK_ERR(sql_shrink_now(st), ERR_OK);
	CHECK(sql_pragma(st->writer.conn, "PRAGMA page_count") < pages);
	fill_disk(-1);
	end();
}

/* clang-format off */
RUN_TESTS(
	T(a_shared_commit_without_room_is_refused_to_each),
	T(a_small_set_is_not_refused_for_a_large_one_behind_it),
	T(the_log_gives_way_where_room_is_short),
	T(a_refusal_says_what_is_free_and_what_is_kept),
	T(space_inside_the_store_is_as_good_as_on_the_disk),
	T(what_is_removed_with_its_directory_gives_room_at_once),
	T(what_is_kept_for_the_superuser_is_not_room_for_others),
	T(some_space_inside_the_store_is_room_for_a_little),
	T(under_a_held_view_there_is_room_while_the_log_can_be_copied),
	T(a_disk_that_cannot_be_looked_at_refuses_or_not),
	T(what_may_use_the_reserve_says_so_of_each_change),
	T(a_large_document_that_changes_its_place_needs_room),
	T(a_store_that_is_read_has_room_for_whatever_is_not_written),
	T(without_room_for_the_log_a_store_stays_as_large_as_it_is))
/* clang-format on */
