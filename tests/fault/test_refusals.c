/* SPDX-License-Identifier: MIT
 * What the system or SQLite refuses, and what the store makes of it: an error that says which of
 * them, and why. */
#include "../unit/check.h"
#include "calls.h"
#include "store/engines.h"
#include "store/sqlite/conn.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static char folder[64], path[80];
static struct err_detail detail;

static void begin(void)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/test_refusals.XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
	(void)snprintf(path, sizeof(path), "%s/store", folder);
	CHECK_ERR(store_create(path, NULL), ERR_OK);
	calls_watch(path);
}

static void end(void)
{
	(void)calls_stop();
	(void)unlink(path);
	CHECK(rmdir(folder) == 0);
}

static enum err open_store(unsigned flags)
{
	struct store *s = NULL;
	memset(&detail, 0, sizeof(detail));
	enum err e = store_open(path, flags, &s, NULL, &detail);
	if (e == ERR_OK)
		store_close(s);
	return e;
}

/* ---- SQLite's codes ---- */

TEST(each_code_of_sqlite_has_an_error)
{
	static const struct {
		int code;
		enum err want;
	} cases[] = {
		{ SQLITE_OK, ERR_OK },
		{ SQLITE_ROW, ERR_OK },
		{ SQLITE_DONE, ERR_OK },
		{ SQLITE_FULL, ERR_NO_SPACE },
		{ SQLITE_IOERR, ERR_IO },
		{ SQLITE_IOERR_READ, ERR_IO },
		{ SQLITE_IOERR_NOMEM, ERR_NO_MEMORY },
		{ SQLITE_IOERR_DATA, ERR_CORRUPT },
		{ SQLITE_NOMEM, ERR_NO_MEMORY },
		{ SQLITE_BUSY, ERR_THROTTLED },
		{ SQLITE_BUSY_SNAPSHOT, ERR_THROTTLED },
		{ SQLITE_LOCKED, ERR_THROTTLED },
		{ SQLITE_PROTOCOL, ERR_THROTTLED },
		{ SQLITE_CORRUPT, ERR_CORRUPT },
		{ SQLITE_NOTADB, ERR_CORRUPT },
		{ SQLITE_CONSTRAINT_PRIMARYKEY, ERR_CORRUPT },
		{ SQLITE_SCHEMA, ERR_CORRUPT },
		{ SQLITE_READONLY_DBMOVED, ERR_READ_ONLY },
		{ SQLITE_PERM, ERR_ACCESS },
		{ SQLITE_AUTH, ERR_ACCESS },
		{ SQLITE_CANTOPEN, ERR_IO },
		{ SQLITE_TOOBIG, ERR_BODY_TOO_LARGE },
		{ SQLITE_INTERRUPT, ERR_CANCELLED },
		{ SQLITE_ERROR, ERR_IO },
		{ SQLITE_MISUSE, ERR_IO },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK_ERR(sql_error(NULL, cases[i].code), cases[i].want);
}

/* What the rules of a change refuse is the caller's; the rest is the store's own. */
TEST(errors_of_the_store_itself_are_told_from_refusals)
{
	static const enum err ours[] = { ERR_NO_SPACE, ERR_IO, ERR_NO_MEMORY, ERR_THROTTLED,
		ERR_CORRUPT, ERR_READ_ONLY, ERR_ACCESS, ERR_CANCELLED };
	static const enum err others[] = { ERR_OK, ERR_NOT_FOUND, ERR_ENTITY_EXISTS, ERR_GONE,
		ERR_CONDITION_NOT_MET, ERR_FILE_TOO_LARGE };
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		CHECK(sql_error_is_ours(ours[i]));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		CHECK(!sql_error_is_ours(others[i]));
}

/* What the system said last counts, too. */
TEST(a_file_that_sqlite_cannot_open_is_told_by_the_systems_reason)
{
	static const struct {
		int error;
		enum err want, of_io;
	} cases[] = {
		{ ENOSPC, ERR_NO_SPACE, ERR_NO_SPACE },
		{ EDQUOT, ERR_NO_SPACE, ERR_NO_SPACE },
		{ ENOMEM, ERR_NO_MEMORY, ERR_IO },
		{ EACCES, ERR_ACCESS, ERR_IO },
		{ EROFS, ERR_READ_ONLY, ERR_IO },
		{ ENOENT, ERR_IO, ERR_IO },
		{ EIO, ERR_IO, ERR_IO },
	};
	begin();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		sqlite3 *db = NULL;
		calls_strike_on(CALLS_FAIL, CALLS_OPEN, true, 1, cases[i].error);
		int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL);
		(void)calls_stop();
		CHECK_EQ_INT(rc & 0xff, SQLITE_CANTOPEN);
		CHECK_ERR(sql_error(db, rc), cases[i].want);
		CHECK_ERR(sql_error(db, SQLITE_IOERR_SHMSIZE), cases[i].of_io);
		(void)sqlite3_close(db);
	}
	sqlite3 *fine = NULL;
	CHECK(sqlite3_open_v2(path, &fine, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
	CHECK_ERR(sql_error(fine, SQLITE_CANTOPEN), ERR_IO);
	(void)sqlite3_close(fine);
	end();
}

/* ---- holding a store ---- */

static int flock_error; /* 0: the real one */

int flock(int fd, int operation)
{
	static int (*real)(int, int);
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "flock");
	errno = flock_error;
	return flock_error != 0 ? -1 : real(fd, operation);
}

TEST(a_store_that_cannot_be_opened_says_why)
{
	static const struct {
		int error;
		unsigned flags;
		enum err want;
		const char *text;
	} cases[] = {
		{ ENOENT, 0, ERR_NOT_FOUND, "there is no store" },
		{ ENOTDIR, 0, ERR_NOT_FOUND, "there is no store" },
		{ EISDIR, 0, ERR_NOT_A_STORE, "is a directory" },
		{ ENXIO, 0, ERR_NOT_A_STORE, "is not a regular file" },
		{ EROFS, 0, ERR_READ_ONLY, "read-only file system" },
		{ EACCES, 0, ERR_READ_ONLY, "may not be written" },
		{ EPERM, STORE_OPEN_READ_ONLY, ERR_ACCESS, "permission denied" },
		{ EIO, 0, ERR_IO, "cannot open" },
	};
	begin();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		calls_strike(CALLS_FAIL, CALLS_OPEN, true, 1, cases[i].error);
		CHECK_ERR(open_store(cases[i].flags), cases[i].want);
		(void)calls_stop();
		CHECK(strstr(detail.text, cases[i].text) != NULL);
	}
	/* Nor may it be read. */
	calls_strike_on(CALLS_FAIL, CALLS_OPEN | CALLS_LOOK, true, 1, EACCES);
	CHECK_ERR(open_store(0), ERR_ACCESS);
	(void)calls_stop();
	CHECK_ERR(open_store(0), ERR_OK);
	end();
}

TEST(a_store_that_cannot_be_made_says_why)
{
	static const struct {
		unsigned calls;
		int error;
		enum err want;
		const char *text;
	} cases[] = {
		{ CALLS_OPEN, EACCES, ERR_ACCESS, "permission denied" },
		{ CALLS_SYNC, EIO, ERR_IO, "input/output error" },
		{ CALLS_OPEN, EACCES, ERR_READ_ONLY, "the file system is read-only" },
	};
	char other[sizeof(path) + 4];
	begin();
	(void)snprintf(other, sizeof(other), "%s.b", path);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool told = false;
		for (unsigned n = 1, struck = 1; struck != 0 && !told; n++) {
			memset(&detail, 0, sizeof(detail));
			calls_strike(CALLS_FAIL, cases[i].calls, false, n, cases[i].error);
			enum err e = store_create(other, &detail);
			struck = calls_now()->struck;
			(void)calls_stop();
			CHECK((e == ERR_OK) == (access(other, F_OK) == 0));
			told = e == cases[i].want && strstr(detail.text, cases[i].text) != NULL;
			(void)unlink(other);
		}
		CHECK(told);
	}
	end();
}

TEST(a_store_that_cannot_be_locked_says_why)
{
	begin();
	flock_error = ENOLCK;
	enum err e = open_store(0);
	flock_error = 0;
	CHECK(e != ERR_OK && e != ERR_BUSY);
	CHECK(strstr(detail.text, "cannot lock") != NULL);
	calls_strike(CALLS_FAIL, CALLS_LOOK, true, 2, EIO); /* the first is of its path */
	e = open_store(0);
	(void)calls_stop();
	CHECK_ERR(e, ERR_IO);
	CHECK(detail.text[0] != '\0');
	CHECK_ERR(open_store(0), ERR_OK);
	end();
}

/* Whatever of it cannot be found out. */
TEST(a_held_store_is_busy_without_memory_too)
{
	struct store *s, *other;
	unsigned named = 0, unnamed = 0, n = 0;
	bool struck;
	begin();
	CHECK_ERR(store_open(path, 0, &s, NULL, NULL), ERR_OK);
	do {
		pid_t holder = -1;
		memset(&detail, 0, sizeof(detail));
		calls_strike(CALLS_FAIL, CALLS_MEMORY, true, ++n, ENOMEM);
		enum err e = store_open(path, 0, &other, &holder, &detail);
		struck = calls_now()->struck > 0;
		(void)calls_stop();
		CHECK(e == ERR_BUSY || e == ERR_NO_MEMORY);
		if (e != ERR_BUSY)
			continue;
		CHECK(holder == getpid() || holder == 0);
		CHECK(strstr(detail.text, "is being served by") != NULL);
		if (strstr(detail.text, "another process"))
			unnamed++;
		else
			named++;
	} while (struck && n < 100);
	CHECK(unnamed > 0 && named > 1);
	store_close(s);
	end();
}

/* Instead of /proc's: NULL: the real ones. */
static const char *locks, *comm;

FILE *fopen(const char *name, const char *mode)
{
	static FILE *(*real)(const char *, const char *);
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "fopen64");
	const char *text = strcmp(name, "/proc/locks") == 0 ? locks
		: strncmp(name, "/proc/", 6) == 0           ? comm
							    : NULL;
	if (text == NULL)
		return real(name, mode);
	static char bytes[400];
	(void)snprintf(bytes, sizeof(bytes), "%s", text);
	FILE *f = fmemopen(bytes, strlen(bytes), "r");
	CHECK(f != NULL);
	return f;
}

static enum err open_held(pid_t *ret)
{
	struct store *s;
	memset(&detail, 0, sizeof(detail));
	return store_open(path, 0, &s, ret, &detail);
}

/* By the file's number and its device's two, in a list of all that are locked. */
TEST(the_holder_is_who_has_this_very_file)
{
	char line[300];
	struct stat st;
	struct store *s;
	pid_t holder;
	begin();
	CHECK_ERR(store_open(path, 0, &s, NULL, NULL), ERR_OK);
	CHECK(stat(path, &st) == 0);
	unsigned a = major(st.st_dev), b = minor(st.st_dev);
	unsigned long n = st.st_ino;
	int at = snprintf(line, sizeof(line),
		"1: POSIX  ADVISORY  WRITE 41 %02x:%02x:%lu 0 EOF\n"
		"2: FLOCK  ADVISORY  WRITE -1 %02x:%02x:%lu 0 EOF\n"
		"3: FLOCK  ADVISORY  WRITE 43 %02x:%02x:%lu 0 EOF\n"
		"4: FLOCK  ADVISORY  WRITE 44 %02x:%02x:%lu 0 EOF\n"
		"5: FLOCK  ADVISORY  WRITE 45 %02x:%02x:%lu 0 EOF\n",
		a, b, n, a, b, n, a + 1, b, n, a, b + 1, n, a, b, n + 1);
	locks = line;
	CHECK_ERR(open_held(&holder), ERR_BUSY);
	CHECK_EQ_INT(holder, 0);
	(void)snprintf(line + at, sizeof(line) - (size_t)at,
		"6: FLOCK  ADVISORY  WRITE 46 %02x:%02x:%lu 0 EOF\n", a, b, n);
	comm = "";
	CHECK_ERR(open_held(&holder), ERR_BUSY);
	CHECK_EQ_INT(holder, 46);
	CHECK(strstr(detail.text, "by process 46") != NULL);
	comm = "other\n";
	CHECK_ERR(open_held(&holder), ERR_BUSY);
	CHECK(strstr(detail.text, "by process 46 (other)") != NULL);
	/* Whatever of the file itself cannot be found out. */
	for (unsigned look = 1; look <= 4; look++) {
		calls_strike(CALLS_FAIL, CALLS_LOOK, true, look, EIO);
		enum err e = open_held(&holder);
		(void)calls_stop();
		CHECK(e == ERR_BUSY || e == ERR_IO);
	}
	locks = comm = NULL;
	store_close(s);
	end();
}

/* clang-format off */
RUN_TESTS(
	T(each_code_of_sqlite_has_an_error),
	T(errors_of_the_store_itself_are_told_from_refusals),
	T(a_file_that_sqlite_cannot_open_is_told_by_the_systems_reason),
	T(a_store_that_cannot_be_opened_says_why),
	T(a_store_that_cannot_be_made_says_why),
	T(a_store_that_cannot_be_locked_says_why),
	T(a_held_store_is_busy_without_memory_too),
	T(the_holder_is_who_has_this_very_file))
/* clang-format on */
