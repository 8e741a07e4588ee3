/* SPDX-License-Identifier: MIT
 * The content of what was salvaged: documents that are none and files without theirs are left out,
 * directories are counted anew, and what they counted before tells how much of them is lost. */
#include "base/clock.h"
#include "store/rules.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/salvage.h"

#include <inttypes.h>
#include <stdio.h>

static enum err note(struct sql_salvage *s, sqlite3_stmt *from, int64_t flags, int64_t version)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(
		s->c->db, "INSERT INTO verdict VALUES(?1,?2,?3,?4,?5)", -1, &st, NULL);
	if (rc == SQLITE_OK) {
		(void)sqlite3_bind_int64(st, 1, sqlite3_column_int64(from, 0));
		(void)sqlite3_bind_int64(st, 2, sqlite3_column_int64(from, 1));
		(void)sqlite3_bind_value(st, 3, sqlite3_column_value(from, 2));
		(void)sqlite3_bind_int64(st, 4, flags);
		(void)sqlite3_bind_int64(st, 5, version);
		rc = sqlite3_step(st);
	}
	(void)sqlite3_finalize(st);
	return sql_error(s->c->db, rc);
}

#define GONE (-1)

static enum err lose(struct sql_salvage *s, sqlite3_stmt *st, const char *why)
{
	sql_salvage_lose(s, (uint64_t)sqlite3_column_int64(st, 0),
		(enum item_class)sqlite3_column_int(st, 1), sql_column_span(st, 2), why);
	return note(s, st, GONE, 0);
}

/* ---- rows and messages ---- */

static const char rows[] =
	"SELECT i.parent,i.class,i.key,i.version,i.size,i.flags,o.body,i.kind FROM item i"
	" LEFT JOIN obj o ON o.id=(i.id" SALVAGE_OBJ_ID
	") AND" SALVAGE_AT("o", "i") "WHERE i.kind IN (4,8,12)";

static enum err on_row(struct sql_salvage *s, sqlite3_stmt *st)
{
	struct item it = {
		.kind = (enum item_kind)sqlite3_column_int(st, 7),
		.parent = (uint64_t)sqlite3_column_int64(st, 0),
		.class = (enum item_class)sqlite3_column_int(st, 1),
		.key = sql_column_span(st, 2),
		.version = sqlite3_column_int64(st, 3),
		.size = (uint64_t)sqlite3_column_int64(st, 4),
		.flags = (uint32_t)sqlite3_column_int64(st, 5) & ITEM_FLAGS_PUBLIC,
		.body = sql_column_span(st, 6),
	};
	uint32_t flags = it.flags;
	if (sqlite3_column_type(st, 6) == SQLITE_NULL || it.size != it.body.n)
		return lose(s, st, "it cannot be read; left out");
	bool empty = item_is_empty_row(&it);
	if (!empty && !s->to->row(s->to->arg, &it, &flags))
		return lose(s, st,
			it.kind == ITEM_ROW               ? "its document is none; left out"
				: it.kind == ITEM_MESSAGE ? "it is no message; left out"
							  : "it is no part of a blob; left out");
	s->to->rows += it.kind == ITEM_ROW && !empty;
	bool dated = it.version > 0 && it.version <= TICKS_MAX;
	if (flags == (uint32_t)sqlite3_column_int64(st, 5) && dated)
		return ERR_OK;
	return note(s, st, flags, dated ? it.version : s->now);
}

/* ---- ordinary files ---- */

static const char files[] =
	"SELECT i.parent,i.class,i.key,i.size,ifnull(i.flags,0)&256,length(o.body),"
	"(SELECT count(*) FROM chunk c WHERE c.id=i.id) FROM item i"
	" CROSS JOIN obj o ON o.id=(i.id" SALVAGE_OBJ_ID ") WHERE i.kind=5 AND i.parent>0";

static enum err on_file(struct sql_salvage *s, sqlite3_stmt *st)
{
	int64_t size = sqlite3_column_int64(st, 3), pieces = sqlite3_column_int64(st, 6);
	bool small = sqlite3_column_int(st, 4) != 0;
	bool none = sqlite3_column_type(st, 5) == SQLITE_NULL;
	if (size < 0 || (small && (none || sqlite3_column_int64(st, 5) != size)))
		return lose(s, st, "the content of the file is lost; left out");
	if (!small && s->pieces_lost && size > pieces * SQL_CHUNK)
		sql_salvage_lose(s, (uint64_t)sqlite3_column_int64(st, 0),
			(enum item_class)sqlite3_column_int(st, 1), sql_column_span(st, 2),
			"pieces of the file may be lost, and read as zeros");
	return ERR_OK;
}

/* ---- counts ---- */

static const char counts[] = "SELECT i.parent,i.class,i.key,i.id,i.kind,ifnull(i.size,0),"
			     "(SELECT count(*) FROM item c WHERE c.parent=i.id) n FROM item i"
			     " WHERE i.kind IN " SALVAGE_DIRS " AND ifnull(i.size,0)<>n";

static enum err on_count(struct sql_salvage *s, sqlite3_stmt *st)
{
	char why[160];
	int kind = sqlite3_column_int(st, 4);
	int64_t had = sqlite3_column_int64(st, 5), has = sqlite3_column_int64(st, 6);
	const char *what = kind == ITEM_PARTITION          ? "rows and files"
		: kind == ITEM_TABLE                       ? "partitions"
		: kind == ITEM_ACCOUNT                     ? "tables, queues and containers"
		: kind == ITEM_QUEUE                       ? "messages"
		: kind == ITEM_CONTAINER                   ? "blobs"
		: kind == ITEM_BLOB || kind == ITEM_EXTENT ? "pieces"
							   : "files";
	if (had < 0)
		(void)snprintf(why, sizeof(why),
			"%" PRId64 " %s were found; how many there were is not known", has, what);
	else if (had > has)
		(void)snprintf(why, sizeof(why), "%" PRId64 " of %" PRId64 " %s are lost",
			had - has, had, what);
	else
		return ERR_OK;
	sql_salvage_lose(s, (uint64_t)sqlite3_column_int64(st, 3), CLASS_KEYED,
		(struct span){ NULL, 0 }, why);
	return ERR_OK;
}

static const char remaining_sums[] =
	/* Pieces of no file, behind its end or of a wrong size. */
	"DELETE FROM chunk WHERE n<0 OR length(data) NOT BETWEEN 1 AND 16384 OR NOT EXISTS"
	"(SELECT 1 FROM obj o CROSS JOIN item i ON" SALVAGE_AT("i",
		"o") "WHERE"
		     " o.id=(chunk.id" SALVAGE_OBJ_ID ") AND i.id=chunk.id AND i.kind=5 AND"
		     " ifnull(i.flags,0)&256=0 AND chunk.n*16384+length(chunk.data)<=i.size);"
		     "UPDATE item SET size=(SELECT count(*) FROM item c WHERE c.parent=item.id) WHERE"
		     " kind IN " SALVAGE_DIRS
		     " AND ifnull(size,0)<>(SELECT count(*) FROM item c WHERE c.parent=item.id);"
		     "UPDATE item SET name=CAST((SELECT ifnull(sum(size),0) FROM item WHERE kind=5)||' '||"
		     "(SELECT ifnull(sum(size),0) FROM item WHERE kind=12) AS BLOB)"
		     " WHERE parent=0 AND id=3";

static enum err set_counters(struct sql_salvage *s)
{
	char text[300];
	(void)snprintf(text, sizeof(text),
		"UPDATE meta SET value=max(%" PRId64 ",value,1+(SELECT max(id) FROM obj))"
		" WHERE name='next_id';"
		"UPDATE meta SET value=max(%" PRId64 ",(SELECT max(version) FROM item))"
		" WHERE name='version_high'",
		s->next_id, s->version_high > s->now ? s->version_high : s->now);
	return sql_exec(s->c, text);
}

static const char obey[] =
	"DELETE FROM item WHERE (parent,class,key) IN"
	" (SELECT parent,class,key FROM verdict WHERE flags<0);"
	"UPDATE item SET flags=nullif(v.flags,0),version=v.version FROM verdict v WHERE v.flags>=0"
	" AND" SALVAGE_AT("item",
		"v") ";"
		     "DELETE FROM obj WHERE id>1024 AND NOT EXISTS(SELECT 1 FROM item i WHERE" SALVAGE_AT(
			     "i", "obj") ")";

enum err sql_salvage_mend_rows(struct sql_salvage *s)
{
	enum err e = sql_exec(s->c,
		"CREATE TEMP TABLE verdict(parent INTEGER,class INTEGER,key BLOB,flags INTEGER,"
		"version INTEGER)");
	if (e == ERR_OK)
		e = sql_salvage_each(s, rows, on_row);
	if (e == ERR_OK)
		e = sql_salvage_each(s, files, on_file);
	if (e == ERR_OK)
		e = sql_exec(s->c, obey);
	if (e == ERR_OK)
		e = sql_salvage_each(s, counts, on_count);
	if (e == ERR_OK)
		e = sql_exec(s->c, remaining_sums);
	return e == ERR_OK ? set_counters(s) : e;
}
