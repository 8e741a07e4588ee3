/* SPDX-License-Identifier: MIT
 * Makes the salvaged records agree with each other.  Items and document rows vouch for each other's
 * places, so that a directory is known while either is there.  Then everything that is still reached
 * from the root stays, and the rest is told. */
#include "model/key.h"
#include "store/rules.h"
#include "store/sqlite/salvage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HAS_OBJ "EXISTS(SELECT 1 FROM obj o WHERE o.id=(item.id" SALVAGE_OBJ_ID "))"
#define LEFT_ID "(a.id|549755813888)"

/* rules_fits(), for a directory d and its child. */
#define FITS \
	"((d.id=1 AND i.kind=1 AND i.class=0) OR (d.id<>1 AND ((d.kind=1 AND i.kind=2 AND i.class=0)" \
	" OR (d.kind=1 AND i.kind=7 AND i.class=2) OR (d.kind=7 AND i.kind=8 AND i.class=2)" \
	" OR (i.class=3 AND ((d.kind=1 AND i.kind=9) OR (d.kind=9 AND i.kind=10)" \
	" OR (d.kind=10 AND i.kind IN (11,12)) OR (d.kind=11 AND i.kind=12) OR (d.id=4 AND i.kind=11)))" \
	" OR (d.kind=2 AND i.kind=3 AND i.class=0) OR (d.kind IN (2,3,6) AND i.kind=6 AND i.class=1)" \
	" OR (d.kind=3 AND i.kind=4 AND i.class=0) OR (d.kind IN (3,6) AND i.kind=5 AND i.class=1))))"

enum err sql_salvage_each(struct sql_salvage *s, const char *sql, sql_salvage_fn fn)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->c->db, sql, -1, &st, NULL);
	enum err e = sql_error(s->c->db, rc);
	while (e == ERR_OK && (rc = sqlite3_step(st)) == SQLITE_ROW)
		e = fn(s, st);
	if (e == ERR_OK)
		e = sql_error(s->c->db, rc);
	(void)sqlite3_finalize(st);
	return e;
}

/* ---- names, to tell what was lost ---- */

static struct span plain(const struct item *it, char out[LIMIT_KEY_BYTES])
{
	struct span s = it->kind == ITEM_TABLE && it->name.n > 0 ? it->name : it->key;
	size_t n = s.n < LIMIT_KEY_BYTES ? s.n : LIMIT_KEY_BYTES;
	if (it->class == CLASS_KEYED && s.p == it->key.p)
		key_from_order(s.p, n, out);
	else
		memcpy(out, s.p, n);
	return span_make(out, n);
}

static void name_dirs(struct sql_salvage *s, uint64_t id)
{
	sqlite3_stmt *st = NULL;
	static const char sql[] =
		"SELECT i.kind,i.class,i.key,i.name,i.parent FROM obj o CROSS JOIN"
		" item i ON" SALVAGE_AT("i", "o") "WHERE o.id=?1";
	memset(&s->at, 0, sizeof(s->at));
	s->named = id;
	if (sqlite3_prepare_v2(s->c->db, sql, -1, &st, NULL) != SQLITE_OK)
		return;
	for (int depth = 0; depth < 100 && id > STORE_ID_FIRST; depth++) {
		(void)sqlite3_bind_int64(st, 1, (int64_t)id);
		if (sqlite3_step(st) != SQLITE_ROW)
			break;
		struct item it = { .kind = (enum item_kind)sqlite3_column_int(st, 0),
			.class = (enum item_class)sqlite3_column_int(st, 1),
			.key = sql_column_span(st, 2),
			.name = sql_column_span(st, 3) };
		if (it.kind == ITEM_ACCOUNT)
			s->at.account = plain(&it, s->account);
		else if (it.kind == ITEM_TABLE || it.kind == ITEM_QUEUE ||
			it.kind == ITEM_CONTAINER)
			s->at.table = plain(&it, s->table);
		else if (it.kind == ITEM_PARTITION || it.kind == ITEM_BLOB)
			s->at.pk = plain(&it, s->pk);
		id = (uint64_t)sqlite3_column_int64(st, 4);
		(void)sqlite3_reset(st);
	}
	(void)sqlite3_finalize(st);
}

void sql_salvage_lose(struct sql_salvage *s, uint64_t parent, enum item_class class,
	struct span key, const char *why)
{
	if (s->named != parent || parent == 0)
		name_dirs(s, parent);
	struct store_loss loss = s->at;
	struct item it = { .class = class, .key = key };
	char name[LIMIT_KEY_BYTES + 1];
	if (key.p != NULL) {
		struct span shown = plain(&it, s->rk);
		if (class == CLASS_KEYED && loss.pk.p != NULL)
			loss.rk = shown;
		(void)snprintf(name, sizeof(name), "%.*s", (int)shown.n, shown.p);
		loss.place = name;
	}
	loss.why = why;
	s->to->losses++;
	s->to->lost(s->to->arg, &loss);
}

/* ---- items and their document rows ---- */

static const char agree[] =
	/* Under two places: the document row, which has the content, is believed. */
	"DELETE FROM item WHERE parent>0 AND EXISTS(SELECT 1 FROM obj o WHERE"
	" o.id=(item.id" SALVAGE_OBJ_ID ") AND NOT(" SALVAGE_AT("o",
		"item") "));"
			"DELETE FROM obj WHERE id>1024 AND EXISTS(SELECT 1 FROM item i WHERE" SALVAGE_AT(
				"i",
				"obj") " AND (i.id" SALVAGE_OBJ_ID ")<>obj.id);"
				       /* Directories and files need none of their document row's content. */
				       "INSERT OR IGNORE INTO obj(id,parent,class,key,body) SELECT id" SALVAGE_OBJ_ID
				       ",parent,class,key,CASE kind WHEN 2 THEN x'' WHEN 7 THEN x'0a' WHEN 9 THEN x'0a0a' END FROM item WHERE parent>0 AND"
				       " kind IN (1,2,3,5,6,7,9,11) AND NOT " HAS_OBJ ";"
				       "DELETE FROM item WHERE parent>0 AND kind NOT IN (4,8,12) AND NOT EXISTS(SELECT 1 FROM obj o WHERE"
				       " o.id=(item.id" SALVAGE_OBJ_ID ") AND" SALVAGE_AT("o",
					       "item") ");"
						       "CREATE TEMP TABLE alone AS SELECT o.id,o.parent,o.class,o.key,length(o.body) n FROM obj o"
						       " WHERE o.id>1024 AND NOT EXISTS(SELECT 1 FROM item i WHERE" SALVAGE_AT(
							       "i",
							       "o") ");"
								    "CREATE INDEX temp.alone_parent ON alone(parent)";

/* Items of document rows that have lost theirs: what it is tells the directory that it is in. */
static const char adopt[] =
	"INSERT OR IGNORE INTO item(parent,class,key,id,kind,version,edition,size,flags,name)"
	" SELECT parent,class,key,id,kind,?1,iif(kind=4,1,NULL),"
	"CASE WHEN kind IN (4,8,12) THEN ifnull(n,-1) WHEN kind<>5 THEN " SALVAGE_UNKNOWN
	" WHEN n IS NOT NULL THEN n ELSE ifnull((SELECT max(c.n*16384+length(c.data))"
	"  FROM chunk c WHERE c.id=k.id),0) END,"
	"iif(kind=5 AND n IS NOT NULL,256,NULL),iif(kind=2,key,NULL) FROM"
	"(SELECT a.parent,a.class,a.key,a.n,"
	" iif(EXISTS(SELECT 1 FROM chunk WHERE id=" LEFT_ID ")," LEFT_ID ",a.id) id,"
	" CASE WHEN d.id=1 THEN 1 WHEN d.kind=1 THEN iif(a.class=3,9,iif(a.class=2,7,2)) WHEN d.kind=7 THEN 8"
	"  WHEN d.kind=9 THEN 10 WHEN d.kind=10 THEN iif(a.n IS NULL,11,12) WHEN d.kind=11 THEN 12"
	"  WHEN a.class=3 THEN 11 WHEN d.kind=2 THEN iif(a.class=0,3,6)"
	"  WHEN d.kind=3 AND a.class=0 THEN 4 WHEN a.n IS NOT NULL THEN 5"
	"  WHEN EXISTS(SELECT 1 FROM item WHERE parent=a.id) THEN 6"
	"  WHEN EXISTS(SELECT 1 FROM alone x WHERE x.parent=a.id) THEN 6 ELSE 5 END kind"
	" FROM alone a CROSS JOIN obj o ON o.id=a.parent CROSS JOIN item d ON" SALVAGE_AT(
		"d", "o") " WHERE d.id=a.parent AND d.kind IN " SALVAGE_DIRS ") k";

/* From the top down, a level at a time. */
static enum err adopt_all(struct sql_salvage *s)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->c->db, adopt, -1, &st, NULL);
	int changed = 1;
	while (rc == SQLITE_OK && changed > 0) {
		(void)sqlite3_bind_int64(st, 1, s->now);
		rc = sqlite3_step(st);
		changed = sqlite3_changes(s->c->db);
		if (rc == SQLITE_DONE)
			rc = sqlite3_reset(st);
	}
	enum err e = sql_error(s->c->db, rc);
	(void)sqlite3_finalize(st);
	return e;
}

/* ---- what was removed ---- */

/* The items below it are left out without a word; their document rows follow them.  Its own item was
 * not taken (salvage.c), but its document row says where it stands: nowhere. */
static const char removed[] =
	"CREATE TEMP TABLE removed(id INTEGER PRIMARY KEY);"
	"WITH RECURSIVE r(id) AS (SELECT id FROM obj WHERE parent=0 AND id>1024 UNION"
	" SELECT i.id FROM r CROSS JOIN item i ON i.parent=r.id WHERE i.kind IN " SALVAGE_DIRS ")"
	" INSERT INTO removed SELECT id FROM r;"
	"DELETE FROM item WHERE parent IN (SELECT id FROM removed)";

/* ---- what is not reached ---- */

static const char reach[] =
	"CREATE TEMP TABLE dir(id INTEGER PRIMARY KEY, kind INTEGER);"
	"WITH RECURSIVE d(id,kind) AS (VALUES(1,6),(2,6),(3,6),(4,6) UNION"
	" SELECT i.id,i.kind FROM d CROSS JOIN item i ON i.parent=d.id"
	" WHERE i.kind IN " SALVAGE_DIRS " AND " FITS ") INSERT OR IGNORE INTO dir SELECT * FROM d;"
	"CREATE TEMP TABLE stray AS SELECT parent,class,key,kind FROM item i WHERE parent>0 AND"
	" NOT EXISTS(SELECT 1 FROM dir d WHERE d.id=i.parent AND " FITS ")";

static enum err on_stray(struct sql_salvage *s, sqlite3_stmt *st)
{
	char why[160];
	int64_t rows = sqlite3_column_int64(st, 1), others = sqlite3_column_int64(st, 2);
	(void)snprintf(why, sizeof(why),
		"%" PRId64 " rows and %" PRId64 " other items of a directory whose name is lost"
		" (id %" PRId64 "); left out",
		rows, others, (int64_t)sqlite3_column_int64(st, 0));
	sql_salvage_lose(s, 0, CLASS_KEYED, (struct span){ NULL, 0 }, why);
	return ERR_OK;
}

/* ---- accounts ---- */

static enum err set_body(struct sql_salvage *s, int64_t id, struct span body)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(s->c, SQL_OBJ_BODY, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, id);
	sql_bind_span(st, 2, body);
	return sql_run(s->c, st);
}

static enum err on_account(struct sql_salvage *s, sqlite3_stmt *st)
{
	struct buf fresh = BUF_INIT(4096);
	struct span body = sql_column_span(st, 2);
	enum err e = s->to->account(s->to->arg, body, NULL);
	if (e == ERR_CORRUPT) {
		sql_salvage_lose(s, STORE_ROOT, CLASS_KEYED, sql_column_span(st, 1),
			"the account's keys are lost; it has new ones");
		e = s->to->account(s->to->arg, body, &fresh);
		if (e == ERR_OK)
			e = set_body(s, sqlite3_column_int64(st, 0), buf_span(&fresh));
	}
	buf_wipe(&fresh);
	return e;
}

enum err sql_salvage_mend(struct sql_salvage *s)
{
	enum err e = sql_exec(s->c, agree);
	if (e == ERR_OK)
		e = adopt_all(s);
	if (e == ERR_OK)
		e = sql_exec(s->c, removed);
	if (e == ERR_OK)
		e = sql_exec(s->c, reach);
	if (e == ERR_OK)
		e = sql_salvage_each(s,
			"SELECT parent,sum(kind=4),sum(kind<>4) FROM stray GROUP BY parent",
			on_stray);
	if (e == ERR_OK)
		e = sql_exec(s->c,
			"DELETE FROM item WHERE (parent,class,key) IN"
			" (SELECT parent,class,key FROM stray)");
	if (e == ERR_OK)
		e = sql_salvage_each(s,
			"SELECT o.id,i.key,o.body FROM item i CROSS JOIN obj o ON o.id=i.id"
			" WHERE i.parent=1",
			on_account);
	return e;
}
