/* SPDX-License-Identifier: MIT
 * What a commit told of is in the files, whatever SQLite did to the log on the way: the files are
 * copied as a kill leaves them, and read without the log's own layer. */
#include "check.h"
#include "store/sqlite/log_file.h"

#include <sqlite3.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS 300

static char dir[64];

static void run(sqlite3 *db, const char *sql)
{
	char *error = NULL;
	CHECK(sqlite3_exec(db, sql, NULL, NULL, &error) == SQLITE_OK);
	sqlite3_free(error);
}

static sqlite3 *open_db(const char *name, const char *vfs)
{
	char uri[200];
	sqlite3 *db = NULL;
	(void)snprintf(uri, sizeof(uri), "file:%s/%s?vfs=%s", dir, name, vfs);
	CHECK(sqlite3_open_v2(uri, &db,
		      SQLITE_OPEN_URI | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) == 0);
	return db;
}

static void copy(const char *from, const char *to)
{
	char a[200], b[200], bytes[65536];
	(void)snprintf(a, sizeof(a), "%s/%s", dir, from);
	(void)snprintf(b, sizeof(b), "%s/%s", dir, to);
	FILE *in = fopen(a, "rb"), *out = fopen(b, "wb");
	CHECK(in != NULL && out != NULL);
	size_t n;
	while ((n = fread(bytes, 1, sizeof(bytes), in)) > 0)
		CHECK(fwrite(bytes, 1, n, out) == n);
	CHECK(fclose(in) == 0 && fclose(out) == 0);
}

static int number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *st;
	CHECK(sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK);
	CHECK(sqlite3_step(st) == SQLITE_ROW);
	int n = sqlite3_column_int(st, 0);
	(void)sqlite3_finalize(st);
	return n;
}

/* Rows of this length that another process would find after a kill. */
static int found_after_kill(int length)
{
	char sql[100];
	copy("a.db", "b.db");
	copy("a.db-wal", "b.db-wal");
	(void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM t WHERE length(b)=%d", length);
	sqlite3 *db = open_db("b.db", "unix");
	int n = number(db, sql);
	CHECK(number(db,
		      "SELECT count(*) FROM pragma_integrity_check WHERE "
		      "integrity_check<>'ok'") == 0);
	CHECK(sqlite3_close(db) == SQLITE_OK);
	return n;
}

static sqlite3 *begin(const char *cache)
{
	char sql[300];
	(void)snprintf(dir, sizeof(dir), "/tmp/test_log_file.XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	static bool registered; /* once for all */
	registered = registered || (sqlite3_initialize() == SQLITE_OK && sql_log_file_register());
	CHECK(registered);
	sqlite3 *db = open_db("a.db", SQL_VFS);
	(void)snprintf(sql, sizeof(sql),
		"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0;"
		"PRAGMA cache_size=%s; CREATE TABLE t(a INTEGER PRIMARY KEY,b)",
		cache);
	run(db, sql);
	run(db,
		"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<300)"
		" INSERT INTO t SELECT n,zeroblob(500) FROM c");
	return db;
}

static void end(sqlite3 *db)
{
	static const char *const names[] = { "a.db", "a.db-wal", "a.db-shm", "b.db", "b.db-wal",
		"b.db-shm" };
	char path[200];
	CHECK(sqlite3_close(db) == SQLITE_OK);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
	CHECK(rmdir(dir) == 0);
}

TEST(a_commit_is_in_the_log_when_it_returns)
{
	sqlite3 *db = begin("2000");
	CHECK(found_after_kill(500) == ROWS);
	run(db, "UPDATE t SET b=zeroblob(501) WHERE a=7");
	CHECK(found_after_kill(501) == 1);
	run(db, "UPDATE t SET b=zeroblob(502)"); /* more pages than are gathered */
	CHECK(found_after_kill(502) == ROWS);
	end(db);
}

/* Larger than the cache, and pages that went to the log are changed again: the commit ends with
 * headers alone. */
TEST(a_commit_that_wrote_pages_twice_is_in_the_log)
{
	sqlite3 *db = begin("10");
	run(db, "BEGIN; UPDATE t SET b=zeroblob(501); UPDATE t SET b=zeroblob(502); COMMIT");
	CHECK(found_after_kill(502) == ROWS);
	run(db, "UPDATE t SET b=zeroblob(503) WHERE a=7");
	CHECK(found_after_kill(503) == 1);
	CHECK(found_after_kill(502) == ROWS - 1);
	end(db);
}

TEST(what_was_rolled_back_is_not)
{
	sqlite3 *db = begin("10");
	run(db, "BEGIN; UPDATE t SET b=zeroblob(501); UPDATE t SET b=zeroblob(502); ROLLBACK");
	CHECK(found_after_kill(500) == ROWS);
	run(db, "UPDATE t SET b=zeroblob(503) WHERE a=7");
	CHECK(found_after_kill(503) == 1);
	CHECK(found_after_kill(500) == ROWS - 1);
	end(db);
}

TEST(another_connection_reads_a_commit_at_once)
{
	sqlite3 *db = begin("2000"), *reader = open_db("a.db", SQL_VFS);
	for (int i = 1; i <= 100; i++) {
		char sql[100];
		(void)snprintf(sql, sizeof(sql), "UPDATE t SET b=zeroblob(600) WHERE a=%d", i);
		run(db, sql);
		CHECK(number(reader, "SELECT count(*) FROM t WHERE length(b)=600") == i);
		if (i % 30 == 0)
			run(db, "PRAGMA wal_checkpoint(RESTART)");
	}
	CHECK(sqlite3_close(reader) == SQLITE_OK);
	end(db);
}

/* clang-format off */
RUN_TESTS(
	T(a_commit_is_in_the_log_when_it_returns),
	T(a_commit_that_wrote_pages_twice_is_in_the_log),
	T(what_was_rolled_back_is_not),
	T(another_connection_reads_a_commit_at_once))
/* clang-format on */
