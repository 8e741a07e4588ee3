/* SPDX-License-Identifier: MIT
 * A copy of a store: what of it can fail, who stops it, and the file that SQLite writes it to. */
#include "../unit/check.h"
#include "calls.h"
#include "store/engines.h"

#include <sqlite3.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64], path[80], copied[100];
static struct store *store;
static uint64_t file;
static int fd;

static uint64_t put(uint64_t parent, enum item_kind kind, int64_t version)
{
	struct change c = { .op = CHANGE_PUT,
		.kind = kind,
		.version = version,
		.at = { .parent = parent, .key = SPAN_LIT("k") },
		.name = SPAN_LIT("Tab"),
		.attrs = ATTRS_UNSET,
		.body = SPAN_LIT("{}") };
	c.at.class = kind == ITEM_FILE ? CLASS_NAMED : CLASS_KEYED;
	CHECK_ERR(store_apply(store, &c, 1, false, NULL), ERR_OK);
	uint64_t id = c.now.id;
	changes_fini(&c, 1);
	return id;
}

/* A store with a file of so many bytes, and an empty file beside it for the copy. */
static void begin(size_t bytes)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/test_copy.XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
	(void)snprintf(path, sizeof(path), "%s/store", folder);
	(void)snprintf(copied, sizeof(copied), "%s.copy", path);
	CHECK_ERR(store_create(path, NULL), ERR_OK);
	CHECK_ERR(store_open(path, 0, &store, NULL, NULL), ERR_OK);
	uint64_t table = put(put(STORE_ROOT, ITEM_ACCOUNT, 100), ITEM_TABLE, 101);
	file = put(put(table, ITEM_PARTITION, 102), ITEM_FILE, 103);
	char *text = calloc(1, bytes);
	struct change c = { .op = CHANGE_WRITE, .at = { .id = file }, .version = 104 };
	c.body = span_make(text, bytes);
	CHECK_ERR(store_apply(store, &c, 1, false, NULL), ERR_OK);
	changes_fini(&c, 1);
	free(text);
	calls_watch(copied);
	fd = open(copied, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
}

static void end(void)
{
	(void)calls_stop();
	(void)close(fd);
	store_close(store);
	(void)unlink(copied);
	(void)unlink(path);
	CHECK(rmdir(folder) == 0);
}

static enum err copy(store_copy_fn fn, void *arg)
{
	struct store_view *v;
	CHECK_ERR(store_view_open(store, &v), ERR_OK);
	enum err e = store_copy(store, v, fd, fn, arg);
	store_view_close(store, v);
	return e;
}

/* Bytes of the file in the copy, which must be clean; -1: it is no store. */
static int64_t size_in_copy(void)
{
	struct store *s;
	struct item it = { 0 };
	if (store_open(copied, STORE_OPEN_READ_ONLY, &s, NULL, NULL) != ERR_OK)
		return -1;
	CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
	CHECK_ERR(store_get(s, NULL, file, WANT_ATTRS, &it), ERR_OK);
	int64_t n = (int64_t)it.size;
	item_fini(&it);
	store_close(s);
	return n;
}

/* ---- what can fail ---- */

TEST(a_copy_says_why_it_cannot_be_written)
{
	static const struct {
		unsigned mask;
		int error;
		enum err want;
	} cases[] = {
		{ CALLS_WRITE, ENOSPC, ERR_NO_SPACE },
		{ CALLS_WRITE, EDQUOT, ERR_NO_SPACE },
		{ CALLS_WRITE, EIO, ERR_IO },
		{ CALLS_READ, EIO, ERR_IO },
		{ CALLS_SYNC, EIO, ERR_IO },
		{ CALLS_SYNC, ENOSPC, ERR_NO_SPACE },
	};
	begin(50000);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CHECK(ftruncate(fd, 0) == 0);
		calls_strike(CALLS_FAIL, cases[i].mask, true, 1, cases[i].error);
		CHECK_ERR(copy(NULL, NULL), cases[i].want);
		(void)calls_stop();
	}
	CHECK(ftruncate(fd, 0) == 0);
	CHECK_ERR(copy(NULL, NULL), ERR_OK);
	CHECK_EQ_INT(size_in_copy(), 50000);
	end();
}

TEST(a_write_that_is_interrupted_or_cut_short_goes_on)
{
	begin(50000);
	calls_strike(CALLS_FAIL, CALLS_WRITE, true, 2, EINTR);
	CHECK_ERR(copy(NULL, NULL), ERR_OK);
	(void)calls_stop();
	CHECK_EQ_INT(size_in_copy(), 50000);
	CHECK(ftruncate(fd, 0) == 0);
	calls_strike(CALLS_FAIL, CALLS_SYNC, true, 1, EINTR);
	CHECK_ERR(copy(NULL, NULL), ERR_OK);
	(void)calls_stop();
	CHECK_EQ_INT(size_in_copy(), 50000);
	CHECK(ftruncate(fd, 0) == 0);
	calls_strike(CALLS_SHORT, CALLS_WRITE, true, 2, 0);
	CHECK_ERR(copy(NULL, NULL), ERR_OK);
	(void)calls_stop();
	CHECK_EQ_INT(size_in_copy(), 50000);
	end();
}

/* Each allocation of it in turn. */
TEST(without_memory_a_copy_fails_and_the_next_is_whole)
{
	begin(50000);
	unsigned n = 0, failed = 0;
	enum err e;
	do {
		struct store_view *v;
		CHECK_ERR(store_view_open(store, &v), ERR_OK);
		CHECK(ftruncate(fd, 0) == 0);
		calls_strike(CALLS_FAIL, CALLS_MEMORY, true, ++n, ENOMEM);
		e = store_copy(store, v, fd, NULL, NULL);
		bool struck = calls_now()->struck > 0;
		(void)calls_stop();
		store_view_close(store, v);
		CHECK(e == ERR_OK || e == ERR_NO_MEMORY);
		failed += e == ERR_NO_MEMORY;
		if (!struck)
			break;
	} while (n < 10000);
	CHECK_ERR(e, ERR_OK);
	CHECK(failed > 10);
	CHECK_EQ_INT(size_in_copy(), 50000);
	end();
}

/* Of the store, this time: what is copied is right, or there is no copy. */
TEST(a_store_that_cannot_be_read_is_not_copied)
{
	unsigned refused = 0, n = 0;
	bool struck;
	begin(2 << 20);
	calls_watch(path);
	do {
		struct store_view *v;
		store_close(store);
		CHECK_ERR(store_open(path, 0, &store, NULL, NULL), ERR_OK);
		CHECK_ERR(store_view_open(store, &v), ERR_OK);
		CHECK(ftruncate(fd, 0) == 0);
		calls_strike(CALLS_FAIL, CALLS_READ, true, ++n, EIO);
		enum err e = store_copy(store, v, fd, NULL, NULL);
		struck = calls_now()->struck > 0;
		(void)calls_stop();
		store_view_close(store, v);
		CHECK(e == ERR_OK || e == ERR_IO);
		refused += e != ERR_OK;
		if (e == ERR_OK)
			CHECK_EQ_INT(size_in_copy(), 2 << 20);
		if (n >= 4)
			n += 100;
	} while (struck && n < 2000);
	CHECK(refused > 0);
	end();
}

/* ---- who follows it ---- */

struct follower {
	unsigned calls, stop_at;
	uint64_t done, total;
};

static bool follow(void *arg, uint64_t done, uint64_t total)
{
	struct follower *f = arg;
	CHECK(done > f->done && done <= total);
	f->done = done;
	f->total = total;
	return ++f->calls != f->stop_at;
}

TEST(a_copy_tells_how_far_it_is_and_can_be_stopped)
{
	struct follower f = { 0 }, stops = { .stop_at = 1 };
	begin((size_t)5 << 20);
	CHECK_ERR(copy(follow, &f), ERR_OK);
	CHECK(f.calls >= 4 && f.total > (uint64_t)5 << 20);
	CHECK_EQ_INT(size_in_copy(), 5 << 20);
	CHECK(ftruncate(fd, 0) == 0);
	CHECK_ERR(copy(follow, &stops), ERR_CANCELLED);
	CHECK_EQ_INT(stops.calls, 1);
	end();
}

/* The contract asks for an empty file. */
TEST(a_copy_over_another_one_is_refused_and_leaves_it)
{
	begin(50000);
	CHECK_ERR(copy(NULL, NULL), ERR_OK);
	CHECK_ERR(copy(NULL, NULL), ERR_IO);
	CHECK_EQ_INT(size_in_copy(), 50000);
	end();
}

/* ---- the file as SQLite sees it ---- */

static sqlite3_file *open_as_sqlite(sqlite3 **ret)
{
	char uri[64];
	sqlite3_file *f = NULL;
	(void)snprintf(uri, sizeof(uri), "file:copy?vfs=rowfs-copy&fd=%d", fd);
	CHECK(sqlite3_open_v2(uri, ret, SQLITE_OPEN_URI | SQLITE_OPEN_READWRITE, NULL) ==
		SQLITE_OK);
	CHECK(sqlite3_file_control(*ret, NULL, SQLITE_FCNTL_FILE_POINTER, &f) == SQLITE_OK);
	return f;
}

TEST(the_file_of_a_copy_is_the_only_one)
{
	sqlite3 *db;
	begin(10000);
	CHECK_ERR(copy(NULL, NULL), ERR_OK);
	sqlite3_file *f = open_as_sqlite(&db);
	sqlite3_int64 size = 0;
	int locked = 1;
	CHECK(f->pMethods->xFileSize(f, &size) == SQLITE_OK && size > 10000);
	CHECK(f->pMethods->xCheckReservedLock(f, &locked) == SQLITE_OK && locked == 0);
	CHECK(f->pMethods->xSync(f, SQLITE_SYNC_NORMAL) == SQLITE_OK);
	/* A journal would be a second one. */
	sqlite3_vfs *vfs = sqlite3_vfs_find("rowfs-copy");
	sqlite3_file *journal = calloc(1, (size_t)vfs->szOsFile);
	CHECK(vfs->xOpen(vfs, "copy-journal", journal, SQLITE_OPEN_MAIN_JOURNAL, NULL) ==
		SQLITE_CANTOPEN);
	CHECK(journal->pMethods == NULL);
	free(journal);
	CHECK(vfs->xAccess(vfs, "copy-journal", SQLITE_ACCESS_EXISTS, &locked) == SQLITE_OK);
	CHECK_EQ_INT(locked, 0);
	CHECK(sqlite3_close(db) == SQLITE_OK);
	end();
}

TEST(the_file_of_a_copy_tells_what_fails)
{
	sqlite3 *db;
	char byte;
	sqlite3_int64 size;
	begin(10000);
	CHECK_ERR(copy(NULL, NULL), ERR_OK);
	sqlite3_file *f = open_as_sqlite(&db);
	calls_strike_on(CALLS_FAIL, CALLS_FILES, true, 1, EIO);
	CHECK(f->pMethods->xRead(f, &byte, 1, 0) == SQLITE_IOERR_READ);
	CHECK(f->pMethods->xWrite(f, "x", 1, 0) == SQLITE_IOERR_WRITE);
	CHECK(f->pMethods->xTruncate(f, 1) == SQLITE_IOERR_TRUNCATE);
	CHECK(f->pMethods->xFileSize(f, &size) == SQLITE_IOERR_FSTAT);
	(void)calls_stop();
	CHECK(f->pMethods->xRead(f, &byte, 1, 0) == SQLITE_OK && byte == 'S');
	CHECK(f->pMethods->xTruncate(f, 1) == SQLITE_OK);
	CHECK(f->pMethods->xFileSize(f, &size) == SQLITE_OK && size == 1);
	CHECK(sqlite3_close(db) == SQLITE_OK);
	end();
}

/* clang-format off */
RUN_TESTS(
	T(a_copy_says_why_it_cannot_be_written),
	T(a_write_that_is_interrupted_or_cut_short_goes_on),
	T(a_store_that_cannot_be_read_is_not_copied),
	T(without_memory_a_copy_fails_and_the_next_is_whole),
	T(a_copy_tells_how_far_it_is_and_can_be_stopped),
	T(a_copy_over_another_one_is_refused_and_leaves_it),
	T(the_file_of_a_copy_is_the_only_one),
	T(the_file_of_a_copy_tells_what_fails))
/* clang-format on */
