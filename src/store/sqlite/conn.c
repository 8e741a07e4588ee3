/* SPDX-License-Identifier: MIT
 * One SQLite connection with its prepared statements: every SQL text of the engine but the
 * schema's stands here. */
#include "store/sqlite/conn.h"

#include "store/sqlite/log_file.h"
#include "store/sqlite/page_sum.h"
#include "store/sqlite/skip.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS "i.id,i.key,i.kind"
#define COLS KEYS ",i.version,i.edition,i.size,i.flags,i.attrs,i.name"
#define COLS_PLACE COLS ",i.parent,i.class"
#define PLACE " i.parent=o.parent AND i.class=o.class AND i.key=o.key "
/* CROSS JOIN: SQLite keeps the order of the tables. */
#define FROM_ID " FROM obj o CROSS JOIN item i ON" PLACE "WHERE o.id=?1"
/* The number of an item's document row: sql_obj_id(). */
#define OBJ_ID "&549755813887"
#define WITH_BODY " FROM item i CROSS JOIN obj o ON o.id=(i.id" OBJ_ID ") "
#define INSERT_ITEM \
	"INSERT INTO item(parent,class,key,id,kind,version,edition,size,flags,attrs,name)" \
	" VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)"
#define UPDATE_ITEM \
	"UPDATE item SET kind=?5,version=?6,edition=?7,size=?8,flags=?9,attrs=?10,name=?11"
#define CHILDREN "WHERE i.parent=?1 AND i.class=?2 AND i.key"
#define NOT_SKIPPED "AND NOT skip(i.key,i.version,i.flags,o.body) ORDER BY i.key"

static const char *const texts[SQL_STMT_COUNT_] = {
	[SQL_BEGIN_READ] = "BEGIN",
	[SQL_BEGIN] = "BEGIN IMMEDIATE",
	[SQL_COMMIT] = "COMMIT",
	[SQL_ROLLBACK] = "ROLLBACK",
	[SQL_SAVEPOINT] = "SAVEPOINT s",
	[SQL_ROLLBACK_TO] = "ROLLBACK TO s",
	[SQL_RELEASE] = "RELEASE s",
	[SQL_GET] = "SELECT " COLS_PLACE FROM_ID,
	[SQL_GET_BODY] = "SELECT " COLS_PLACE ",o.body" FROM_ID,
	[SQL_GET_BY_SEARCH] = "SELECT " COLS_PLACE " FROM item i WHERE i.id=?1",
	[SQL_CHILD] = "SELECT " COLS " FROM item i " CHILDREN "=?3",
	[SQL_CHILD_BODY] = "SELECT " COLS ",o.body" WITH_BODY CHILDREN "=?3",
	[SQL_LIST_GT] = "SELECT " COLS " FROM item i " CHILDREN ">?3 ORDER BY i.key",
	[SQL_LIST_GE] = "SELECT " COLS " FROM item i " CHILDREN ">=?3 ORDER BY i.key",
	[SQL_LIST_GT_KEYS] = "SELECT " KEYS " FROM item i " CHILDREN ">?3 ORDER BY i.key",
	[SQL_LIST_GE_KEYS] = "SELECT " KEYS " FROM item i " CHILDREN ">=?3 ORDER BY i.key",
	[SQL_LIST_GT_BODY] = "SELECT " COLS ",o.body" WITH_BODY CHILDREN ">?3 ORDER BY i.key",
	[SQL_LIST_GE_BODY] = "SELECT " COLS ",o.body" WITH_BODY CHILDREN ">=?3 ORDER BY i.key",
	[SQL_SCAN_GT] = "SELECT " COLS ",o.body" WITH_BODY CHILDREN ">?3 " NOT_SKIPPED,
	[SQL_SCAN_GE] = "SELECT " COLS ",o.body" WITH_BODY CHILDREN ">=?3 " NOT_SKIPPED,
	[SQL_BODY] = "SELECT body FROM obj WHERE id=?1",
	/* One statement, so that size and content are of one moment. */
	[SQL_FILE_READ] =
		"SELECT i.kind,i.size,c.n,c.data,o.body FROM obj o CROSS JOIN item i ON" PLACE
		"LEFT JOIN chunk c ON c.id=i.id AND c.n BETWEEN ?2 AND ?3 "
		"WHERE o.id=?1 AND i.id=?4 ORDER BY c.n",
	[SQL_ITEM_INSERT] = INSERT_ITEM,
	[SQL_ITEM_TRY] = INSERT_ITEM " ON CONFLICT DO NOTHING",
	[SQL_ITEM_UPDATE] = UPDATE_ITEM " WHERE parent=?1 AND class=?2 AND key=?3 AND id=?4",
	[SQL_ITEM_DELETE] = "DELETE FROM item WHERE parent=?1 AND class=?2 AND key=?3",
	[SQL_OBJ_INSERT] = "INSERT INTO obj(id,parent,class,key,body) VALUES(?1,?2,?3,?4,?5)",
	[SQL_OBJ_BODY] = "UPDATE obj SET body=?2 WHERE id=?1",
	[SQL_OBJ_PLACE] = "UPDATE obj SET parent=?2,class=?3,key=?4 WHERE id=?1",
	[SQL_OBJ_PLACE_BODY] = "UPDATE obj SET parent=?2,class=?3,key=?4,body=?5 WHERE id=?1",
	[SQL_OBJ_DELETE] = "DELETE FROM obj WHERE id=?1",
	[SQL_CHUNK_GET] = "SELECT data FROM chunk WHERE id=?1 AND n=?2",
	[SQL_CHUNK_PUT] = "INSERT OR REPLACE INTO chunk(id,n,data) VALUES(?1,?2,?3)",
	[SQL_CHUNK_CUT] = "DELETE FROM chunk WHERE id=?1 AND n>=?2",
	[SQL_CHUNK_TAIL] = "SELECT n FROM chunk WHERE id=?1 ORDER BY n DESC LIMIT 1 OFFSET ?2",
	/* The way up ends at a directory that every store has, or nowhere. */
	[SQL_IS_REMOVED] = "WITH RECURSIVE up(id,parent) AS"
			   " (SELECT id,parent FROM obj WHERE id=?1 UNION SELECT o.id,o.parent"
			   " FROM up CROSS JOIN obj o ON o.id=up.parent)"
			   " SELECT 1 FROM up WHERE parent=0 AND id>1024",
	[SQL_FIRST_REMOVED] = "SELECT id FROM item WHERE parent=0 AND class=0 AND id>1024"
			      " AND key=CAST(CAST(id AS TEXT) AS BLOB) LIMIT 1",
	[SQL_FIRST_CHILD] = "SELECT " COLS_PLACE " FROM item i WHERE i.parent=?1"
			    " ORDER BY i.class,i.key LIMIT 1",
	[SQL_LAST_ID] = "SELECT max(id) FROM obj",
	/* Digits; version 1 has it in meta. */
	[SQL_FILE_BYTES] = "SELECT coalesce((SELECT value FROM meta WHERE name='file_bytes'),"
			   "(SELECT CAST(CAST(i.name AS TEXT) AS INTEGER) FROM obj o"
			   " CROSS JOIN item i ON" PLACE "WHERE o.id=?1),0)",
	/* Behind the files' sum; stores from before have none. */
	[SQL_PIECE_BYTES] = "SELECT CAST(substr(t,instr(t,' ')) AS INTEGER) FROM (SELECT"
			    " CAST(i.name AS TEXT) AS t FROM obj o CROSS JOIN item i ON" PLACE
			    "WHERE o.id=?1) WHERE instr(t,' ')>0",
	[SQL_PIECE_COUNT] = "SELECT ifnull(sum(size),0) FROM item WHERE kind=12",
	[SQL_META_GET] = "SELECT value FROM meta WHERE name=?1",
	[SQL_META_PUT] = "INSERT OR REPLACE INTO meta(name,value) VALUES(?1,?2)",
	[SQL_FEED_ADD] = "INSERT INTO feed(n,version,tab,kind,pk,rk) VALUES(?1,?2,?3,?4,?5,?6)",
	[SQL_FEED_CUT] = "DELETE FROM feed WHERE n<?1",
	[SQL_FEED_AT] = "SELECT version FROM feed WHERE n=?1",
	[SQL_FEED_ENDS] =
		"SELECT n,(SELECT max(n) FROM feed),"
		"(SELECT version FROM feed ORDER BY n LIMIT 1 OFFSET 1) FROM feed ORDER BY n LIMIT 1",
	[SQL_FEED_LIST] = "SELECT n,version,tab,kind,pk,rk FROM feed WHERE n>?1 ORDER BY n",
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_log_file;

/* Memory statistics cost a process-wide lock at every allocation. */
static void configure(void)
{
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	has_log_file = sql_log_file_register();
}

static enum err set_up(struct sql_conn *c, enum sql_mode mode)
{
	(void)sqlite3_extended_result_codes(c->db, 1);
	(void)sqlite3_busy_timeout(c->db, SQL_BUSY_TIMEOUT_MS);
	(void)sqlite3_db_config(c->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	(void)sqlite3_db_config(c->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	enum err e = sql_exec(c, "PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=OFF");
	if (e == ERR_OK)
		e = sql_skip_register(c);
	if (e != ERR_OK)
		return e;
	/* No mmap: a fault in it would be a SIGBUS, and the pages of a listed table would
	 * count as the daemon's memory.  A reader has few pages of its own, which stay in the
	 * processor's cache: of a large store most would not be there either way. */
	if (mode != SQL_MODE_WRITER && mode != SQL_MODE_NEW)
		return sql_exec(c, "PRAGMA cache_size=-1024; PRAGMA query_only=1");
	if (mode == SQL_MODE_NEW) {
		int reserve = PAGE_SUM_BYTES;
		(void)sqlite3_file_control(c->db, NULL, SQLITE_FCNTL_RESERVE_BYTES, &reserve);
		e = sql_exec(c, "PRAGMA auto_vacuum=INCREMENTAL"); /* shrink.c */
	}
	return e != ERR_OK ? e
			   : sql_exec(c,
				     "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
				     "PRAGMA journal_size_limit=67108864;"
				     "PRAGMA cache_size=-32768");
}

/* "file:" URI of a path: %, ? and # are not themselves there. */
static char *uri_of(const char *path, const char *query)
{
	char *uri = malloc(3 * strlen(path) + strlen(query) + 8);
	if (!uri)
		return NULL;
	char *p = stpcpy(uri, "file:");
	for (const char *s = path; *s; s++) {
		if (*s == '%' || *s == '?' || *s == '#')
			p += snprintf(p, 4, "%%%02X", (unsigned)(unsigned char)*s);
		else
			*p++ = *s;
	}
	stpcpy(p, query);
	return uri;
}

bool sql_plain_uri(const char *path, char *out, size_t n)
{
	char *uri = uri_of(path, "?vfs=unix");
	bool fits = uri != NULL && snprintf(out, n, "%s", uri) < (int)n;
	free(uri);
	return fits;
}

enum err sql_conn_open(const char *path, enum sql_mode mode, struct sql_conn **ret)
{
	/* unix-excl: one process has the file, so its connections need no locks of the system
	 * among each other (a third of what a read costs otherwise). */
	static const char *const queries[] = {
		[SQL_MODE_NEW] = "?vfs=" SQL_VFS,
		[SQL_MODE_WRITER] = "?vfs=" SQL_VFS,
		[SQL_MODE_READER] = "?vfs=" SQL_VFS,
		[SQL_MODE_READ_ONLY] = "?mode=ro&vfs=" SQL_VFS_RO,
		[SQL_MODE_IMMUTABLE] = "?mode=ro&immutable=1&vfs=" SQL_VFS_RO,
	};
	(void)pthread_once(&once, configure);
	if (!has_log_file)
		return ERR_NO_MEMORY; /* nothing else keeps SQLite from starting */
	struct sql_conn *c = calloc(1, sizeof(*c));
	char *uri = uri_of(path, queries[mode]);
	if (!c || !uri) {
		free(c);
		free(uri);
		return ERR_NO_MEMORY;
	}
	bool ro = mode == SQL_MODE_READ_ONLY || mode == SQL_MODE_IMMUTABLE;
	int flags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX |
		(ro ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
	int rc = sqlite3_open_v2(uri, &c->db, flags, NULL);
	free(uri);
	enum err e = rc == SQLITE_OK ? set_up(c, mode) : sql_error(c->db, rc);
	if (e != ERR_OK) {
		sql_conn_close(c);
		return e;
	}
	*ret = c;
	return ERR_OK;
}

void sql_conn_close(struct sql_conn *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < ARRAY_LEN(c->st); i++)
		(void)sqlite3_finalize(c->st[i]);
	item_fini(&c->dir);
	(void)sqlite3_close(c->db);
	if (c->page_sum != NULL)
		atomic_fetch_sub_explicit(c->page_sum, c->page_bytes, memory_order_relaxed);
	free(c);
}

void sql_conn_count_pages(struct sql_conn *c, _Atomic uint64_t *sum)
{
	int bytes = 0, highest;
	(void)sqlite3_db_status(c->db, SQLITE_DBSTATUS_CACHE_USED, &bytes, &highest, /* reset */ 0);
	if ((uint64_t)bytes == c->page_bytes)
		return;
	atomic_fetch_add_explicit(sum, (uint64_t)bytes - c->page_bytes, memory_order_relaxed);
	c->page_bytes = (uint64_t)bytes;
	c->page_sum = sum;
}

enum err sql_prepare(struct sql_conn *c, enum sql_stmt which, sqlite3_stmt **ret)
{
	if (!c->st[which]) {
		int rc = sqlite3_prepare_v3(
			c->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT, &c->st[which], NULL);
		/* The texts are right: the tables are not. */
		if (rc != SQLITE_OK)
			return rc == SQLITE_ERROR ? ERR_CORRUPT : sql_error(c->db, rc);
	}
	*ret = c->st[which];
	return ERR_OK;
}

enum err sql_run(struct sql_conn *c, sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);
	enum err e = sql_error(c->db, rc);
	(void)sqlite3_reset(st);
	return e;
}

enum err sql_do(struct sql_conn *c, enum sql_stmt which)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(c, which, &st);
	return e != ERR_OK ? e : sql_run(c, st);
}

enum err sql_end_reading(struct sql_conn *c)
{
	item_fini(&c->dir);
	c->has_removed = SQL_UNKNOWN;
	c->stands = 0;
	return sqlite3_get_autocommit(c->db) ? ERR_OK : sql_do(c, SQL_COMMIT);
}

enum err sql_first(struct sql_conn *c, sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		return ERR_OK;
	enum err e = rc == SQLITE_DONE ? ERR_NOT_FOUND : sql_error(c->db, rc);
	(void)sqlite3_reset(st);
	return e;
}

enum err sql_exec(struct sql_conn *c, const char *text)
{
	return sql_error(c->db, sqlite3_exec(c->db, text, NULL, NULL, NULL));
}

void sql_bind_span(sqlite3_stmt *st, int at, struct span s)
{
	(void)sqlite3_bind_blob64(st, at, s.p ? s.p : "", s.n, SQLITE_STATIC);
}

struct span sql_column_span(sqlite3_stmt *st, int at)
{
	const void *p = sqlite3_column_blob(st, at);
	size_t n = (size_t)sqlite3_column_bytes(st, at);
	return span_make(p ? p : "", n);
}

enum err sql_meta_get(struct sql_conn *c, const char *name, int64_t *ret)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(c, SQL_META_GET, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
	e = sql_first(c, st);
	if (e != ERR_OK)
		return e;
	*ret = sqlite3_column_int64(st, 0);
	(void)sqlite3_reset(st);
	return ERR_OK;
}

enum err sql_meta_put(struct sql_conn *c, const char *name, int64_t value)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(c, SQL_META_PUT, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(st, 2, value);
	return sql_run(c, st);
}

uint64_t sql_pragma(struct sql_conn *c, const char *text)
{
	sqlite3_stmt *st;
	uint64_t n = 0;
	if (sqlite3_prepare_v2(c->db, text, -1, &st, NULL) == SQLITE_OK) {
		if (sqlite3_step(st) == SQLITE_ROW)
			n = (uint64_t)sqlite3_column_int64(st, 0);
		(void)sqlite3_finalize(st);
	}
	return n;
}
