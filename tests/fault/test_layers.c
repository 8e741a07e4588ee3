/* SPDX-License-Identifier: MIT
 * The layers between SQLite and the system's files, called as SQLite does not call them but may. */
#include "../unit/check.h"
#include "calls.h"
#include "store/engines.h"
#include "store/sqlite/log_file.h"
#include "store/sqlite/page_file.h"
#include "store/sqlite/page_sum.h"
#include "store/sqlite/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64], path[80], other[100];
static struct store *store;

static void begin(void)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/test_layers.XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
	(void)snprintf(path, sizeof(path), "%s/store", folder);
	(void)snprintf(other, sizeof(other), "%s.other", path);
	CHECK_ERR(store_create(path, NULL), ERR_OK);
	calls_watch(path);
	CHECK_ERR(store_open(path, 0, &store, NULL, NULL), ERR_OK);
}

static void end(void)
{
	(void)calls_stop();
	CHECK_ERR(store_check(store, NULL, NULL, NULL), ERR_OK);
	store_close(store);
	(void)unlink(other);
	CHECK(unlink(path) == 0 && rmdir(folder) == 0);
}

/* ---- files opened by name ---- */

struct opened {
	sqlite3_file *file;
	sqlite3_filename name;
};

static int open_with(struct opened *o, const char *vfs_name, const char *name, int flags,
	const char **params, int n, int *ret_flags)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(vfs_name);
	CHECK(vfs != NULL);
	o->name = sqlite3_create_filename(name, "", "", n, params);
	o->file = calloc(1, (size_t)vfs->szOsFile);
	return vfs->xOpen(vfs, o->name, o->file, flags, ret_flags);
}

static void close_opened(struct opened *o)
{
	if (o->file->pMethods != NULL)
		CHECK(o->file->pMethods->xClose(o->file) == SQLITE_OK);
	free(o->file);
	sqlite3_free_filename(o->name);
}

static bool is_sealed_at(off_t at, uint32_t number)
{
	unsigned char page[PAGE_BYTES];
	int fd = open(other, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pread(fd, page, sizeof(page), at) == PAGE_BYTES);
	(void)close(fd);
	return page_is_whole(page, number);
}

TEST(only_whole_pages_get_a_sum)
{
	unsigned char page[PAGE_BYTES] = { 0 };
	struct opened o;
	begin();
	CHECK(open_with(&o, SQL_VFS, other,
		      SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL, 0,
		      NULL) == SQLITE_OK);
	const sqlite3_io_methods *m = o.file->pMethods;
	page[PAGE_RESERVED_AT] = PAGE_SUM_BYTES;
	CHECK(m->xWrite(o.file, page, PAGE_BYTES, 0) == SQLITE_OK);
	CHECK(m->xWrite(o.file, page, PAGE_BYTES, PAGE_BYTES) == SQLITE_OK);
	CHECK(is_sealed_at(0, 1) && is_sealed_at(PAGE_BYTES, 2));
	CHECK(m->xWrite(o.file, page, PAGE_BYTES, 2 * PAGE_BYTES + 8) == SQLITE_OK);
	CHECK(m->xWrite(o.file, page, 10, 4 * PAGE_BYTES) == SQLITE_OK);
	CHECK(m->xWrite(o.file, page, 10, 0) == SQLITE_OK);
	CHECK(!is_sealed_at(2 * PAGE_BYTES + 8, 3));
	close_opened(&o);
	end();
}

TEST(a_copy_seals_whole_pages_only)
{
	unsigned char page[PAGE_BYTES] = { 0 };
	char number[16], out[4];
	const char *params[] = { "fd", number, "sealed", "1" };
	struct store_view *v;
	struct opened o;
	begin();
	int fd = open(other, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	(void)snprintf(number, sizeof(number), "%d", fd);
	/* A first copy registers it. */
	CHECK_ERR(store_view_open(store, &v), ERR_OK);
	CHECK_ERR(store_copy(store, v, fd, NULL, NULL), ERR_OK);
	CHECK(open_with(&o, "rowfs-copy", "copy", SQLITE_OPEN_MAIN_DB, params, 2, NULL) ==
		SQLITE_OK);
	CHECK(o.file->pMethods->xWrite(o.file, page, PAGE_BYTES, 0) == SQLITE_OK);
	CHECK(is_sealed_at(0, 1));
	CHECK(o.file->pMethods->xWrite(o.file, page, 10, PAGE_BYTES) == SQLITE_OK);
	close_opened(&o);
	sqlite3_vfs *vfs = sqlite3_vfs_find("rowfs-copy");
	CHECK(vfs->xFullPathname(vfs, "copy", sizeof(out), out) == SQLITE_CANTOPEN);
	store_view_close(store, v);
	(void)close(fd);
	end();
}

TEST(a_log_that_is_opened_for_reading_only_is_none)
{
	struct opened o;
	char log[100];
	int got = 0;
	begin();
	(void)snprintf(log, sizeof(log), "%s-wal", path);
	int flags = SQLITE_OPEN_WAL | SQLITE_OPEN_READWRITE;
	CHECK(open_with(&o, SQL_VFS, log, flags, NULL, 0, NULL) == SQLITE_OK);
	close_opened(&o);
	flags = SQLITE_OPEN_WAL | SQLITE_OPEN_READONLY;
	CHECK(open_with(&o, SQL_VFS, log, flags, NULL, 0, &got) == SQLITE_IOERR);
	close_opened(&o);
	end();
}

/* ---- the log ---- */

#define HEADER 24
#define FAR (1 << 20) /* behind all that is in the log */

static sqlite3_file *log_of_store(void)
{
	sqlite3_file *f = NULL;
	CHECK(sqlite3_file_control(sql_of(store)->writer.conn->db, "main",
		      SQLITE_FCNTL_JOURNAL_POINTER, &f) == SQLITE_OK);
	return f;
}

static int header_at(sqlite3_file *f, sqlite3_int64 at)
{
	static const unsigned char header[HEADER];
	return f->pMethods->xWrite(f, header, HEADER, at);
}

static int page_at(sqlite3_file *f, sqlite3_int64 at)
{
	static const unsigned char page[PAGE_BYTES];
	return f->pMethods->xWrite(f, page, PAGE_BYTES, at);
}

/* Whatever is asked of the file, what was gathered goes first, or it is not answered. */
TEST(what_was_gathered_and_cannot_be_written_fails_what_comes_next)
{
	begin();
	sqlite3_file *f = log_of_store();
	for (int what = 0; what < 4; what++) {
		sqlite3_int64 size;
		CHECK(header_at(f, FAR) == SQLITE_OK);
		calls_strike(CALLS_FAIL, CALLS_WRITE, true, 1, EIO);
		int rc = what == 0  ? f->pMethods->xTruncate(f, 2 * FAR)
			: what == 1 ? f->pMethods->xSync(f, SQLITE_SYNC_NORMAL)
			: what == 2 ? f->pMethods->xFileSize(f, &size)
				    : page_at(f, 3 * FAR);
		(void)calls_stop();
		CHECK((rc & 0xff) == SQLITE_IOERR);
		/* What is behind it is not written, nor a page in its place. */
		CHECK((page_at(f, FAR + HEADER) & 0xff) == SQLITE_IOERR);
		CHECK((header_at(f, FAR + 100) & 0xff) == SQLITE_IOERR);
	}
	CHECK(header_at(f, FAR) == SQLITE_OK);
	CHECK(f->pMethods->xTruncate(f, FAR) == SQLITE_OK);
	end();
}

TEST(only_headers_with_their_pages_are_gathered)
{
	sqlite3_int64 size = 0;
	begin();
	sqlite3_file *f = log_of_store();
	CHECK(header_at(f, FAR) == SQLITE_OK);
	CHECK(header_at(f, FAR + HEADER) == SQLITE_OK); /* where its page belongs */
	CHECK(header_at(f, FAR) == SQLITE_OK);
	CHECK(header_at(f, 2 * FAR) == SQLITE_OK); /* somewhere else */
	CHECK(header_at(f, FAR) == SQLITE_OK);
	CHECK(page_at(f, 2 * FAR) == SQLITE_OK);
	CHECK(header_at(f, FAR) == SQLITE_OK);
	CHECK(page_at(f, FAR + HEADER) == SQLITE_OK);
	CHECK(page_at(f, FAR + HEADER + PAGE_BYTES) == SQLITE_OK); /* without one */
	CHECK(header_at(f, FAR) == SQLITE_OK);
	CHECK(page_at(f, FAR + HEADER) == SQLITE_OK);
	CHECK(header_at(f, 3 * FAR) == SQLITE_OK);
	CHECK(f->pMethods->xFileSize(f, &size) == SQLITE_OK);
	CHECK_EQ_INT(size, 3 * FAR + HEADER);
	CHECK(f->pMethods->xTruncate(f, FAR) == SQLITE_OK);
	end();
}

/* clang-format off */
RUN_TESTS(
	T(only_whole_pages_get_a_sum),
	T(a_copy_seals_whole_pages_only),
	T(a_log_that_is_opened_for_reading_only_is_none),
	T(what_was_gathered_and_cannot_be_written_fails_what_comes_next),
	T(only_headers_with_their_pages_are_gathered))
/* clang-format on */
