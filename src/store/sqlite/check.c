/* SPDX-License-Identifier: MIT
 * Verification of the file: SQLite's own structure first, then that the tables agree with
 * each other.  All of it reads, in one transaction, so it may run beside writers. */
#include "store/sqlite/rows.h"
#include "store/sqlite/store.h"

#include <string.h>

_Static_assert(ITEM_ACCOUNT == 1 && ITEM_TABLE == 2 && ITEM_PARTITION == 3 && ITEM_ROW == 4 &&
		ITEM_FILE == 5 && ITEM_FOLDER == 6 && SQL_CHUNK == 16384,
	"kept in files: the numbers in the texts below and in conn.c");

struct checker {
	struct sql_conn *conn;
	store_check_fn fn;
	store_progress_fn progress;
	void *arg;
	uint64_t findings;
	bool stopped;
};

/* Each gives one line of text per finding. */
static const char *const queries[] = {
	"PRAGMA integrity_check(20)",
	"SELECT 'item '||i.id||' has no document row' FROM item i LEFT JOIN obj o ON o.id=i.id"
	" WHERE o.id IS NULL",
	"SELECT 'item '||i.id||' is kept under two places' FROM item i JOIN obj o ON o.id=i.id"
	" WHERE o.parent<>i.parent OR o.class<>i.class OR o.key<>i.key",
	"SELECT 'document row '||o.id||' has no item' FROM obj o LEFT JOIN item i ON"
	" i.parent=o.parent AND i.class=o.class AND i.key=o.key WHERE i.id IS NULL OR i.id<>o.id",
	"SELECT 'item '||i.id||' has no directory '||i.parent FROM item i LEFT JOIN obj o"
	" ON o.id=i.parent WHERE i.parent<>0 AND o.id IS NULL",
	"SELECT 'item '||i.id||' stands in '||d.id||', which is no directory' FROM obj p"
	" JOIN item d ON d.parent=p.parent AND d.class=p.class AND d.key=p.key"
	" JOIN item i ON i.parent=p.id WHERE d.kind NOT IN (1,2,3,6)",
	"SELECT 'directory '||d.id||' counts '||ifnull(d.size,0)||' children, it has '||ifnull(n,0)"
	" FROM item d LEFT JOIN (SELECT parent p,count(*) n FROM item GROUP BY parent) ON p=d.id"
	" WHERE d.kind IN (1,2,3,6) AND ifnull(d.size,0)<>ifnull(n,0)",
	"SELECT 'row '||i.id||' has '||ifnull(i.size,0)||' bytes, its document '||"
	"ifnull(length(o.body),'none') FROM item i JOIN obj o ON o.id=i.id"
	" WHERE i.kind=4 AND (o.body IS NULL OR length(o.body)<>ifnull(i.size,0))",
	"SELECT 'a piece of content belongs to no file: id '||c.id FROM chunk c"
	" LEFT JOIN obj o ON o.id=c.id LEFT JOIN item i ON"
	" i.parent=o.parent AND i.class=o.class AND i.key=o.key"
	" WHERE i.kind IS NULL OR i.kind<>5 GROUP BY c.id",
	"SELECT 'file '||i.id||' has content behind its end' FROM item i JOIN chunk c ON c.id=i.id"
	" WHERE i.kind=5 AND c.n*16384+length(c.data)>ifnull(i.size,0) GROUP BY i.id",
	"SELECT 'the files have '||b||' bytes, the count says '||m.value FROM meta m,"
	"(SELECT ifnull(sum(size),0) b FROM item WHERE kind=5) WHERE m.name='file_bytes' AND b<>m.value",
	"SELECT 'item '||id||' has an id that is still to be given out' FROM obj"
	" WHERE id>=(SELECT value FROM meta WHERE name='next_id')",
	"SELECT 'item '||id||' is of a version later than any given out' FROM item"
	" WHERE version>(SELECT value FROM meta WHERE name='version_high')",
	"SELECT 'fixed item '||v||' is missing' FROM (SELECT 1 v UNION SELECT 2 UNION SELECT 3)"
	" LEFT JOIN obj ON id=v WHERE id IS NULL",
};

static void tell(struct checker *c, const char *text)
{
	c->findings++;
	if (c->fn && !c->fn(c->arg, text))
		c->stopped = true;
}

static enum err run(struct checker *c, const char *text)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(c->conn->db, text, -1, &st, NULL);
	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(st);
		if (rc != SQLITE_ROW || c->stopped)
			break;
		const char *line = (const char *)sqlite3_column_text(st, 0);
		if (line && strcmp(line, "ok") != 0)
			tell(c, line);
	}
	enum err e = c->stopped ? ERR_OK : sql_error(c->conn->db, rc);
	(void)sqlite3_finalize(st);
	if (e == ERR_CORRUPT) {
		tell(c, "the file is damaged: SQLite cannot read all of it");
		e = ERR_OK;
	}
	return e;
}

static enum err run_all(struct checker *c)
{
	enum err e = ERR_OK;
	const uint64_t total = ARRAY_LEN(queries);
	for (size_t i = 0; e == ERR_OK && !c->stopped && i < ARRAY_LEN(queries); i++) {
		if (c->progress)
			c->progress(c->arg, i, total);
		e = run(c, queries[i]);
	}
	if (e == ERR_OK && c->progress)
		c->progress(c->arg, total, total);
	return e;
}

enum err sql_check(struct store *s, store_check_fn fn, store_progress_fn progress, void *arg)
{
	struct checker c = { .fn = fn, .progress = progress, .arg = arg };
	struct store_view *v;
	enum err e = store_view_open(s, &v);
	if (e == ERR_CORRUPT) {
		tell(&c, "the file is damaged: SQLite cannot read it");
		return ERR_CORRUPT;
	}
	if (e != ERR_OK)
		return e;
	c.conn = sql_view_conn(v);
	e = run_all(&c);
	store_view_close(s, v);
	if (e != ERR_OK)
		return e;
	return c.findings > 0 ? ERR_CORRUPT : ERR_OK;
}
