/* SPDX-License-Identifier: MIT
 * The log beside a store: how long it gets, when it begins anew, and the layers that SQLite reaches
 * it through. */
#include "one_store.h"
#include "store/sqlite/store.h"

#include <sys/stat.h>

static off_t log_size(void)
{
	char name[100];
	struct stat st;
	(void)snprintf(name, sizeof(name), "%s-wal", path);
	return stat(name, &st) == 0 ? st.st_size : 0;
}

TEST(a_long_log_is_copied_into_the_store)
{
	static char body[1 << 20]; /* another one each time, or SQLite would write nothing */
	struct stat st;
	begin();
	for (int i = 0; i < 40; i++) {
		memset(body, i, sizeof(body));
		struct span text = span_make(body, sizeof(body));
		CHECK_ERR(apply(put(ITEM_ROW, row_at("p", "r"), text)), ERR_OK);
	}
	CHECK(log_size() < 40 << 20); /* it began anew */
	CHECK(stat(path, &st) == 0 && st.st_size >= 1 << 20);
	end();
}

/* Somebody's view kept it growing. */
TEST(a_log_that_is_too_large_is_brought_back)
{
	char name[100];
	begin();
	(void)snprintf(name, sizeof(name), "%s-wal", path);
	CHECK(truncate(name, SQL_LOG_BYTES + 4096) == 0);
	CHECK_ERR(put_row("a"), ERR_OK);
	CHECK_ERR(put_row("b"), ERR_OK);
	CHECK(log_size() <= 64 << 20);
	CHECK_ERR(put_row("c"), ERR_OK);
	be_killed();
	CHECK(truncate(name, SQL_LOG_BYTES + 4096) == 0);
	CHECK_ERR(open_store(0), ERR_OK);
	CHECK_EQ_INT(log_size(), 0);
	CHECK(has_row("a") && has_row("c"));
	end();
}

TEST(nothing_is_written_to_a_store_whose_file_is_not_there_any_more)
{
	char aside[100];
	begin();
	(void)snprintf(aside, sizeof(aside), "%s.c", path);
	CHECK(rename(path, aside) == 0);
	CHECK_ERR(put_row("a"), ERR_IO);
	copy(".c", ""); /* the same bytes are another file */
	CHECK_ERR(put_row("a"), ERR_IO);
	CHECK(unlink(path) == 0);
	CHECK(symlink("/proc/self/status", path) == 0); /* of another file system */
	CHECK_ERR(put_row("a"), ERR_IO);
	CHECK(rename(aside, path) == 0);
	CHECK_ERR(put_row("a"), ERR_OK);
	end();
}

/* What readers keep from being brought back is left to them for a while; what is held, for
 * good. */
TEST(a_log_that_is_read_is_tried_ever_more_rarely)
{
	char name[100];
	struct store_view *v = NULL;
	begin();
	const struct sql_writer *w = &sql_of(store)->writer;
	(void)snprintf(name, sizeof(name), "%s-wal", path);
	CHECK_ERR(put_row("r"), ERR_OK);
	CHECK_ERR(store_view_open(store, &v), ERR_OK);
	CHECK(truncate(name, SQL_LOG_BYTES + 4096) == 0);
	CHECK_ERR(put_row("a"), ERR_OK);
	uint64_t tried = w->log_tried;
	CHECK(tried > SQL_LOG_BYTES);
	CHECK_ERR(put_row("b"), ERR_OK);
	CHECK_EQ_INT(w->log_tried, tried);
	store_view_close(store, v);
	CHECK_ERR(store_view_hold(store, &v), ERR_OK);
	CHECK_ERR(put_row("c"), ERR_OK);
	CHECK_EQ_INT(w->log_tried, 0);
	store_view_close(store, v);
	CHECK(log_size() <= 64 << 20);
	CHECK(has_row("a") && has_row("b") && has_row("c"));
	end();
}

static sqlite3_file *file_of_sqlite(int which)
{
	sqlite3_file *f = NULL;
	CHECK(sqlite3_file_control(sql_of(store)->writer.conn->db, "main", which, &f) == SQLITE_OK);
	return f;
}

/* What is not changed on the way down. */
TEST(the_layers_below_sqlite_pass_on_what_they_do_not_look_at)
{
	int locked = 1, none = 0;
	begin();
	sqlite3_file *log = file_of_sqlite(SQLITE_FCNTL_JOURNAL_POINTER);
	CHECK(log->pMethods->xLock(log, SQLITE_LOCK_SHARED) == SQLITE_OK);
	CHECK(log->pMethods->xCheckReservedLock(log, &locked) == SQLITE_OK && locked == 0);
	CHECK(log->pMethods->xUnlock(log, SQLITE_LOCK_NONE) == SQLITE_OK);
	CHECK(log->pMethods->xFileControl(log, -1, &none) == SQLITE_NOTFOUND);
	sqlite3_file *file = file_of_sqlite(SQLITE_FCNTL_FILE_POINTER);
	CHECK(file->pMethods->xCheckReservedLock(file, &locked) == SQLITE_OK && locked == 0);
	CHECK(file->pMethods->xSectorSize(file) == log->pMethods->xSectorSize(log));
	CHECK(file->pMethods->xDeviceCharacteristics(file) ==
		log->pMethods->xDeviceCharacteristics(log));
	CHECK(file->pMethods->xSectorSize(file) >= 512);
	CHECK_ERR(put_row("a"), ERR_OK);
	end();
}

/* clang-format off */
RUN_TESTS(
	T(a_long_log_is_copied_into_the_store),
	T(a_log_that_is_too_large_is_brought_back),
	T(nothing_is_written_to_a_store_whose_file_is_not_there_any_more),
	T(a_log_that_is_read_is_tried_ever_more_rarely),
	T(the_layers_below_sqlite_pass_on_what_they_do_not_look_at))
/* clang-format on */
