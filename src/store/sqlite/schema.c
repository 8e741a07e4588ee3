/* SPDX-License-Identifier: MIT
 * The tables in the file.  `item` has what a listing shows, in the order of listings; a
 * listing never reads a document.  `obj` leads from an id to its place and holds the
 * document, so that opening a row by id is one seek for each.  The header is checked by
 * reading it, before SQLite is let near a file that may not be ours. */
#include "store/sqlite/schema.h"

#include "model/filename.h"
#include "model/key.h"
#include "store/sqlite/page_file.h"
#include "store/sqlite/page_sum.h"
#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where the header of the file says how many pages it has. */
#define HEADER_PAGES_AT 28

static const char tables[] =
	"CREATE TABLE item("
	" parent INTEGER NOT NULL, class INTEGER NOT NULL, key BLOB NOT NULL,"
	" id INTEGER NOT NULL, kind INTEGER NOT NULL, version INTEGER NOT NULL,"
	" edition INTEGER, size INTEGER, flags INTEGER,"
	" attrs BLOB, name BLOB,"
	" PRIMARY KEY(parent,class,key)) WITHOUT ROWID, STRICT;"
	"CREATE TABLE obj("
	" id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, class INTEGER NOT NULL,"
	" key BLOB NOT NULL, body BLOB) STRICT;"
	"CREATE TABLE chunk("
	" id INTEGER NOT NULL, n INTEGER NOT NULL, data BLOB NOT NULL,"
	" PRIMARY KEY(id,n)) WITHOUT ROWID, STRICT;"
	"CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID, STRICT;"
	"INSERT INTO meta VALUES('version_high',0);";

static enum err add_fixed(struct sql_conn *c, int id, const char *key)
{
	char text[256];
	(void)snprintf(text, sizeof(text),
		"INSERT INTO item(parent,class,key,id,kind,version,flags)"
		" VALUES(0,1,CAST('%s' AS BLOB),%d,%d,0,%d);"
		"INSERT INTO obj(id,parent,class,key) VALUES(%d,0,1,CAST('%s' AS BLOB))",
		key, id, (int)ITEM_FOLDER, (int)ITEM_MADE, id, key);
	return sql_exec(c, text);
}

enum err sql_schema_create(struct sql_conn *c)
{
	char ids[200];
	(void)snprintf(ids, sizeof(ids),
		"INSERT INTO meta VALUES('next_id',%d);"
		"PRAGMA application_id=%d; PRAGMA user_version=%d",
		STORE_ID_FIRST + 1, SQL_APPLICATION_ID, SQL_SCHEMA_VERSION);
	enum err e = sql_exec(c, "BEGIN");
	if (e == ERR_OK)
		e = sql_exec(c, tables);
	if (e == ERR_OK)
		e = sql_exec(c, ids);
	if (e == ERR_OK)
		e = add_fixed(c, STORE_ROOT, "root");
	if (e == ERR_OK)
		e = add_fixed(c, STORE_REJECTED, "rejected");
	if (e == ERR_OK)
		e = add_fixed(c, STORE_TRASH, "trash");
	if (e == ERR_OK)
		e = add_fixed(c, STORE_ORPHANS, "orphans");
	return e == ERR_OK ? sql_exec(c, "COMMIT") : e;
}

/* The key of a row's file name in order form; NULL where the name tells none. */
static void row_key(sqlite3_context *ret, int n, sqlite3_value **args)
{
	char order[LIMIT_KEY_BYTES];
	struct filename f;
	const void *name = sqlite3_value_blob(args[0]);
	size_t bytes = (size_t)sqlite3_value_bytes(args[0]);
	(void)n;
	if (name == NULL || *(const char *)name == '.' ||
		filename_decode(span_make(name, bytes), FILENAME_ROW, &f, NULL) != ERR_OK ||
		f.form != FILENAME_KEY)
		return;
	key_to_order(f.key, f.key_len, order);
	sqlite3_result_blob(ret, order, (int)f.key_len, SQLITE_TRANSIENT);
}

/* Empty files under row names become rows without a document; where the row stands they go. */
static const char empty_rows[] =
	"CREATE TEMP TABLE waits AS SELECT i.parent dir,i.key file,i.id&549755813887 obj_id,"
	"row_key(i.key) rk FROM item i CROSS JOIN obj o ON o.id=i.parent"
	" CROSS JOIN item d ON d.parent=o.parent AND d.class=o.class AND d.key=o.key"
	" WHERE i.kind=5 AND i.class=1 AND ifnull(i.size,0)=0 AND d.kind=3 AND rk IS NOT NULL;"
	"UPDATE OR IGNORE item SET class=0,key=rk,kind=4,flags=NULL,attrs=substr(attrs,1,28)"
	" FROM temp.waits WHERE parent=dir AND class=1 AND key=file;"
	"UPDATE obj SET class=0,key=rk,body=x'' FROM temp.waits WHERE id=obj_id;"
	"DELETE FROM obj WHERE id IN (SELECT obj_id FROM temp.waits CROSS JOIN item"
	" ON parent=dir AND class=1 AND item.key=file);"
	"DELETE FROM item WHERE (parent,class,key) IN (SELECT dir,1,file FROM temp.waits);"
	"UPDATE item SET flags=ifnull(flags,0)|8,"
	"size=(SELECT count(*) FROM item c WHERE c.parent=item.id)"
	" FROM (SELECT DISTINCT o.parent p,o.class c,o.key k FROM temp.waits CROSS JOIN obj o"
	" ON o.id=dir) WHERE parent=p AND class=c AND key=k;"
	"DROP TABLE temp.waits";

enum err sql_schema_empty_rows(struct sql_conn *c)
{
	int rc = sqlite3_create_function(
		c->db, "row_key", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, row_key, NULL, NULL);
	enum err e = sql_error(c->db, rc);
	return e == ERR_OK ? sql_exec(c, empty_rows) : e;
}

/* Versions without and with checksums come in pairs. */
static bool has_sums(int version)
{
	return version >= 3 && version % 2 == 1;
}

enum err sql_schema_upgrade(struct sql_conn *c, int *version)
{
	char text[100];
	int to = has_sums(*version) ? SQL_SCHEMA_VERSION : SQL_SCHEMA_UNSEALED;
	(void)snprintf(text, sizeof(text),
		"PRAGMA user_version=%d; DELETE FROM meta WHERE name='file_bytes'", to);
	enum err e = sql_exec(c, text);
	if (e == ERR_OK && *version < 4)
		e = sql_schema_empty_rows(c);
	if (e == ERR_OK)
		*version = to;
	return e;
}

enum err sql_schema_version(struct sql_conn *c, int *ret)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(c->db, "PRAGMA user_version", -1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	*ret = rc == SQLITE_ROW ? sqlite3_column_int(st, 0) : 0;
	(void)sqlite3_finalize(st);
	return rc == SQLITE_ROW ? ERR_OK : sql_error(c->db, rc);
}

static uint32_t big_endian(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Up to n bytes from the beginning; fewer only where the file ends.  -1: errno. */
static ssize_t read_head(int fd, unsigned char *out, size_t n)
{
	size_t got = 0;
	while (got < n) {
		ssize_t more = TEMP_FAILURE_RETRY(pread(fd, out + got, n - got, (off_t)got));
		if (more < 0)
			return -1;
		if (more == 0)
			break;
		got += (size_t)more;
	}
	return (ssize_t)got;
}

enum err sql_schema_check_header(int fd, const char *path, struct err_detail *detail)
{
	unsigned char head[100];
	ssize_t n = read_head(fd, head, sizeof(head));
	if (n < 0)
		return err_set(detail, err_from_errno(errno), "cannot read %s", path);
	if (n == 0)
		return err_set(
			detail, ERR_NOT_A_STORE, "%s is an empty file, not a rowfs store", path);
	if (n < (ssize_t)sizeof(head) || memcmp(head, "SQLite format 3", 16) != 0)
		return err_set(detail, ERR_NOT_A_STORE, "%s is not a rowfs store", path);
	if (big_endian(head + 68) != SQL_APPLICATION_ID)
		return err_set(detail, ERR_NOT_A_STORE,
			"%s is a SQLite database, but not a rowfs store", path);
	uint32_t version = big_endian(head + 60);
	if (version > SQL_SCHEMA_VERSION)
		return err_set(detail, ERR_STORE_TOO_NEW,
			"%s has schema version %u; this rowfs reads up to version %d", path,
			version, SQL_SCHEMA_VERSION);
	if (version < 1)
		return err_set(detail, ERR_NOT_A_STORE, "%s is an unfinished store", path);
	/* Else its pages would be read as if they had none. */
	if (has_sums((int)version) && head[PAGE_RESERVED_AT] != PAGE_SUM_BYTES)
		return err_set(detail, ERR_CORRUPT,
			"%s is damaged: its header knows nothing of its pages' checksums; "
			"restore a backup",
			path);
	return ERR_OK;
}

bool sql_schema_cut_short(int fd, const char *path, char *why, size_t n)
{
	unsigned char head[HEADER_PAGES_AT + 4];
	struct stat file, log;
	char name[PATH_MAX + 8];
	/* A log may have what the file lacks. */
	if (snprintf(name, sizeof(name), "%s-wal", path) >= (int)sizeof(name) ||
		(stat(name, &log) == 0 && log.st_size > 0))
		return false;
	if (fstat(fd, &file) != 0 || read_head(fd, head, sizeof(head)) < (ssize_t)sizeof(head))
		return false;
	uint64_t want = (uint64_t)big_endian(head + HEADER_PAGES_AT) * PAGE_BYTES;
	if (file.st_size < 0 || (uint64_t)file.st_size >= want)
		return false;
	(void)snprintf(why, n, "the file was cut short: %" PRIu64 " of %" PRIu64 " bytes are there",
		(uint64_t)file.st_size, want);
	return true;
}
