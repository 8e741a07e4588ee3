/* SPDX-License-Identifier: MIT
 * Verification of the file: SQLite's own structure first, then that the tables agree with
 * each other.  All of it reads, in one transaction, so it may run beside writers.  Nothing is
 * sorted or gathered but the ids of dot folders: memory does not grow with the rows. */
#include "store/sqlite/check_place.h"
#include "store/sqlite/page_file.h"
#include "store/sqlite/page_sum.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(ITEM_ACCOUNT == 1 && ITEM_TABLE == 2 && ITEM_PARTITION == 3 && ITEM_ROW == 4 &&
		ITEM_FILE == 5 && ITEM_FOLDER == 6 && ITEM_QUEUE == 7 && ITEM_MESSAGE == 8 &&
		ITEM_CONTAINER == 9 && ITEM_BLOB == 10 && ITEM_EXTENT == 11 && ITEM_PIECE == 12 &&
		ITEM_PIECE_FLAGS == 255 && CLASS_BLOB == 3 && CLASS_QUEUE == 2 &&
		SQL_CHUNK == 16384 && SQL_IS_INLINE == 256 && RULES_ID_LEFT == 549755813888 &&
		STORE_ID_BITS == 40 && STORE_ID_FIRST == 1024 && SQL_ATTRS_PLAIN == 28 &&
		SQL_ATTRS_BYTES == 36 && SQL_BORN_BYTES == 8 && ITEM_MADE == 1 &&
		ITEM_KEYS_INSIDE + ITEM_CANONICAL + ITEM_HELD_EMPTY == 14,
	"kept in files: the numbers in the texts below and in conn.c");

#define TEXT_MAX 1024
#define FINDINGS_OF_FILE 20
#define READ_TRIES 20
#define READ_AGAIN_US 5000

#define OBJ_ID "i.id&549755813887"
#define OBJ " o.id=(" OBJ_ID ")"
#define AT ",i.parent,i.class,i.key"
#define DIRS "(1,2,3,6,7,9,10,11)"
/* Its space is being reclaimed (reclaim.c). */
#define REMOVED "(parent=0 AND class=0 AND id>1024 AND key=CAST(CAST(id AS TEXT) AS BLOB))"

struct checker {
	const struct sql_store *store;
	struct sql_conn *conn;
	store_check_fn fn;
	store_progress_fn progress;
	void *arg;
	sqlite3_stmt *st;     /* at work; NULL: the structure is checked */
	uint64_t done, total; /* of the unit at work, before the statement */
	uint64_t scans;       /* so many items the statement looks at, about */
	uint64_t findings;
	bool stopped;
	bool unreadable; /* told already */
};

/* Each gives a line for a finding: the text, and the place of the item that it is about, or the
 * text alone; a text that is NULL is none. */
static const char *const file_queries[] = {
	"SELECT 'the database has a '||type||' that is not of rowfs: '||name FROM sqlite_schema"
	" WHERE type<>'table' OR name NOT IN ('item','obj','chunk','meta','feed')",
	"SELECT 'the counter '||v||' is missing' FROM (SELECT 'next_id' v UNION ALL SELECT"
	" 'version_high') LEFT JOIN meta ON name=v WHERE name IS NULL",
	"SELECT CASE WHEN name NOT IN ('next_id','version_high','file_bytes','feed_begin','feed_until')"
	" THEN 'there is a counter that is not of rowfs: '||name"
	" WHEN name='next_id' AND value NOT BETWEEN 1025 AND 549755813888 OR value<0"
	" THEN 'the counter '||name||' is out of range' END FROM meta",
	"SELECT 'the folder '||v||' that every store has is missing or is something else' FROM"
	" (SELECT 1 v UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4)"
	" LEFT JOIN obj o ON o.id=v LEFT JOIN item i ON"
	" i.parent=o.parent AND i.class=o.class AND i.key=o.key AND i.id=v"
	" WHERE i.id IS NULL OR i.parent<>0 OR i.class<>1 OR i.kind<>6",
};
/* Each looks at all items. */
static const char *const item_queries[] = {
	/* Items, each by itself. */
	"SELECT CASE WHEN kind NOT BETWEEN 1 AND 12 THEN 'it is of no known kind'"
	" WHEN parent=0 AND id>4 AND NOT " REMOVED " THEN 'it stands nowhere'"
	" WHEN class<>CASE WHEN kind<5 THEN 0 WHEN kind<7 THEN 1 WHEN kind<9 THEN 2 ELSE 3 END"
	" AND NOT " REMOVED " THEN 'it is of the wrong class'"
	" WHEN id<1 OR id>=1099511627776 OR id BETWEEN 5 AND 1024 THEN 'its id is out of range'"
	" WHEN ifnull(size,0)<0 THEN 'its size is negative'"
	" WHEN version<0 THEN 'its version is negative'"
	" WHEN ifnull(flags,0)&~CASE kind WHEN 5 THEN 263 WHEN 12 THEN 255 ELSE 15 END"
	" THEN 'it has marks that nothing has'"
	" WHEN ifnull(edition,0) NOT BETWEEN 0 AND CASE WHEN kind IN (4,5,8,12) THEN 9223372036854775807 ELSE 0 END"
	" THEN 'the number of its generation is wrong'"
	" WHEN ifnull(length(attrs),28)<>28 AND (kind<>5 OR length(attrs)<>36)"
	" THEN 'its mode, owner and times cannot be read'"
	" WHEN name IS NOT NULL AND kind<>2 AND id<>3 AND NOT (kind IN (4,5,8,12) AND length(name)=8)"
	" THEN 'it has a name that only tables have'"
	" WHEN version>(SELECT value FROM meta WHERE name='version_high')"
	" THEN 'it is of a version later than any given out'"
	" END" AT " FROM item i",
	/* Items and their document rows. */
	"SELECT CASE WHEN o.id IS NULL THEN 'it has no document row'"
	" WHEN o.parent<>i.parent OR o.class<>i.class OR o.key<>i.key"
	" THEN 'it is kept under two places'"
	" WHEN i.kind IN (4,8,12) AND (o.body IS NULL OR length(o.body)<>ifnull(i.size,0))"
	" THEN CASE i.kind WHEN 4 THEN 'the row has ' WHEN 8 THEN 'the message has ' ELSE 'the piece has ' END||"
	"ifnull(i.size,0)||' bytes, its document '||ifnull(length(o.body),'none')"
	" WHEN i.kind=5 AND CASE WHEN i.flags&256"
	" THEN o.body IS NULL OR length(o.body)>ifnull(i.size,0) ELSE o.body IS NOT NULL END"
	" THEN 'the small file has '||ifnull(i.size,0)||' bytes, its document row '||"
	"ifnull(length(o.body),'none')"
	" WHEN i.kind IN (3,6,11) AND i.id<>1 AND o.body IS NOT NULL THEN 'it has a document, though it is a directory'"
	" WHEN o.id>=(SELECT value FROM meta WHERE name='next_id')"
	" THEN 'it has an id that is still to be given out'"
	" END" AT " FROM item i LEFT JOIN obj o ON" OBJ,
	"SELECT 'document row '||o.id||' has no item',o.parent,o.class,o.key FROM obj o"
	" LEFT JOIN item i ON i.parent=o.parent AND i.class=o.class AND i.key=o.key"
	" WHERE i.id IS NULL OR (" OBJ_ID ")<>o.id",
	/* Items and their directories. */
	"SELECT 'it has no directory '||i.parent" AT " FROM item i LEFT JOIN obj o ON o.id=i.parent"
	" WHERE i.parent<>0 AND o.id IS NULL",
	"SELECT 'it may not stand where it does'" AT
	" FROM item d CROSS JOIN item i ON i.parent=d.id"
	" WHERE NOT ifnull(CASE WHEN d.id=1 THEN i.kind IN (1,5,6) ELSE CASE d.kind"
	" WHEN 1 THEN i.kind IN (2,5,6,7,9) WHEN 7 THEN i.kind=8 WHEN 9 THEN i.kind=10"
	" WHEN 10 THEN i.kind IN (11,12) WHEN 11 THEN i.kind=12 WHEN 2 THEN i.kind IN (3,5,6) WHEN 3 THEN i.kind IN (4,5,6)"
	" WHEN 6 THEN i.kind IN (5,6) OR (d.id=4 AND i.kind=11) END END,0)",
	"SELECT 'directory counts '||ifnull(size,0)||' children, it has '||n,parent,class,key FROM"
	" (SELECT *,(SELECT count(*) FROM item c WHERE c.parent=i.id) n FROM item i"
	" WHERE kind IN " DIRS ") WHERE ifnull(size,0)<>n",
	"WITH RECURSIVE r(id) AS (SELECT i.id FROM item i LEFT JOIN obj o ON o.id=i.parent"
	" LEFT JOIN item d ON d.parent=o.parent AND d.class=o.class AND d.key=o.key"
	" WHERE i.kind=6 AND ifnull(d.kind,0)<>6 UNION"
	" SELECT i.id FROM r CROSS JOIN item i ON i.parent=r.id WHERE i.kind=6)"
	" SELECT 'the folder cannot be reached: it stands in itself'" AT " FROM item i"
	" WHERE kind=6 AND id NOT IN r",
};
static const char *const chunk_queries[] = {
	/* The pieces of ordinary files. */
	"SELECT CASE WHEN i.kind IS NULL OR i.kind<>5 OR i.flags&256"
	" THEN 'a piece of content belongs to no file: id '||c.id"
	" WHEN c.n<0 OR length(c.data) NOT BETWEEN 1 AND 16384"
	" THEN 'the file has a piece of content of a wrong size or number'"
	" WHEN c.n*16384+length(c.data)>ifnull(i.size,0) THEN 'the file has content behind its end'"
	" END" AT " FROM chunk c LEFT JOIN obj o ON o.id=(c.id&549755813887)"
	" LEFT JOIN item i ON i.parent=o.parent AND i.class=o.class AND i.key=o.key AND i.id=c.id",
};

/* ---- progress ---- */

/* SQLite calls it after so many of its machine's instructions: some dozens for an item. */
#define TELL_OPS 10000

static int on_ops(void *arg)
{
	struct checker *c = arg;
	uint64_t steps = (uint64_t)sqlite3_stmt_status(
		c->st, SQLITE_STMTSTATUS_FULLSCAN_STEP, /* reset */ 0);
	uint64_t done = c->done + (steps < c->scans ? steps : c->scans);
	c->progress(c->arg, STORE_CHECK_ITEMS, done, c->total);
	return 0;
}

static void on_read(void *arg)
{
	struct checker *c = arg;
	c->done += c->done < c->total;
	c->progress(c->arg, STORE_CHECK_PAGES, c->done, c->total);
}

/* ---- telling ---- */

static void tell(struct checker *c, const char *text)
{
	c->findings++;
	if (c->fn && !c->fn(c->arg, text))
		c->stopped = true;
}

/* The statement stands at a line as the queries give it. */
static void tell_line(struct checker *c, sqlite3_stmt *st)
{
	char line[TEXT_MAX], place[SQL_PLACE_MAX] = "";
	const char *text = (const char *)sqlite3_column_text(st, 0);
	if (!text)
		return;
	if (sqlite3_column_count(st) > 1 && sqlite3_column_type(st, 1) != SQLITE_NULL)
		sql_place_text(c->conn, (uint64_t)sqlite3_column_int64(st, 1),
			(enum item_class)sqlite3_column_int(st, 2), sql_column_span(st, 3), place);
	(void)snprintf(line, sizeof(line), "%s%s%s", place, place[0] ? ": " : "", text);
	tell(c, line);
}

/* ---- pages ---- */

static bool is_sealed(int fd)
{
	unsigned char reserved = 0;
	return pread(fd, &reserved, 1, PAGE_RESERVED_AT) == 1 && reserved == PAGE_SUM_BYTES;
}

/* SQLite leaves the page that is locked by byte, of a file of over 1 GiB, as it is. */
#define LOCKED_PAGE ((UINT32_C(1) << 30) / PAGE_BYTES + 1)

static bool is_empty(const unsigned char page[PAGE_BYTES])
{
	return page[0] == 0 && memcmp(page, page + 1, PAGE_BYTES - 1) == 0;
}

/* Read again where somebody writes: a checkpoint may have been at it. */
static bool page_is_damaged(const struct sql_store *s, uint32_t number, bool *ret_empty)
{
	unsigned char page[PAGE_BYTES];
	int all = s->read_only ? 1 : READ_TRIES;
	for (int tries = 0; tries < all; tries++) {
		if (tries > 0)
			(void)usleep(READ_AGAIN_US);
		off_t at = (off_t)(number - 1) * PAGE_BYTES;
		bool read = pread(s->hold_fd, page, sizeof(page), at) == PAGE_BYTES;
		if (read && page_is_whole(page, number))
			return false;
		*ret_empty = read && is_empty(page);
	}
	return true;
}

/* Names the pages whose checksums are wrong, some of them. */
static void tell_pages(struct checker *c)
{
	int fd = c->store->hold_fd;
	unsigned told = 0;
	struct stat st;
	if (!is_sealed(fd) || fstat(fd, &st) != 0)
		return;
	for (uint32_t n = 1; n <= st.st_size / PAGE_BYTES && told < FINDINGS_OF_FILE; n++) {
		char text[160];
		bool empty = false;
		if (n == LOCKED_PAGE || !page_is_damaged(c->store, n, &empty))
			continue;
		(void)snprintf(text, sizeof(text),
			"the file is damaged from byte %" PRIu64 " on, for %d bytes: %s",
			(uint64_t)(n - 1) * PAGE_BYTES, PAGE_BYTES,
			empty ? "only zeros are there" : "their checksum is wrong");
		tell(c, text);
		told++;
	}
	char cut[100];
	if (sql_schema_cut_short(fd, c->store->path, cut, sizeof(cut)))
		tell(c, cut);
	else if (st.st_size % PAGE_BYTES != 0)
		tell(c, "the file ends in the middle of a page: its end is missing");
}

static void tell_unreadable(struct checker *c, enum err e)
{
	if (c->unreadable)
		return;
	c->unreadable = true;
	tell(c,
		e == ERR_IO ? "the disk refuses to read all of the file: I/O error"
			    : "the file is damaged: SQLite cannot read all of it");
	tell_pages(c);
}

/* ---- running ---- */

/* What a query came to; its findings are told. */
static enum err end_of(struct checker *c, int rc)
{
	char text[TEXT_MAX];
	enum err e = sql_error(c->conn->db, rc);
	if (rc == SQLITE_ERROR) { /* a table is missing, or has other columns */
		(void)snprintf(text, sizeof(text), "the tables of the database are not rowfs's: %s",
			sqlite3_errmsg(c->conn->db));
		tell(c, text);
		e = ERR_OK;
	} else if (e == ERR_CORRUPT || e == ERR_IO) {
		tell_unreadable(c, e);
		e = ERR_OK;
	}
	return e;
}

/* scans: so many items, about. */
static enum err run(struct checker *c, const char *text, uint64_t scans)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(c->conn->db, text, -1, &st, NULL);
	c->st = st;
	c->scans = scans;
	if (c->progress)
		c->progress(c->arg, STORE_CHECK_ITEMS, c->done, c->total);
	if (c->progress && st)
		sqlite3_progress_handler(c->conn->db, TELL_OPS, on_ops, c);
	while ((rc == SQLITE_OK || rc == SQLITE_ROW) && !c->stopped) {
		rc = sqlite3_step(st);
		if (rc == SQLITE_ROW)
			tell_line(c, st);
	}
	sqlite3_progress_handler(c->conn->db, 0, NULL, NULL);
	c->done += scans;
	enum err e = c->stopped ? ERR_OK : end_of(c, rc);
	(void)sqlite3_finalize(st);
	return e;
}

static enum err run_each(struct checker *c, const char *const *queries, size_t n, uint64_t scans)
{
	enum err e = ERR_OK;
	for (size_t i = 0; e == ERR_OK && !c->stopped && i < n; i++)
		e = run(c, queries[i], scans);
	return e;
}

/* SQLite's own words for what is wrong with a tree, a page, the list of free pages. */
static enum err check_structure(struct checker *c)
{
	char line[TEXT_MAX];
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(c->conn->db, "PRAGMA integrity_check(20)", -1, &st, NULL);
	while ((rc == SQLITE_OK || rc == SQLITE_ROW) && !c->stopped) {
		rc = sqlite3_step(st);
		const char *text =
			rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
		if (!text || strcmp(text, "ok") == 0)
			continue;
		(void)snprintf(line, sizeof(line), "the database in the file is damaged: %s", text);
		tell(c, line);
	}
	enum err e = c->stopped ? ERR_OK : end_of(c, rc);
	(void)sqlite3_finalize(st);
	return e;
}

static enum err check_pieces(struct checker *c)
{
	uint64_t said, counted;
	enum err e = sql_piece_bytes(c->conn, &said);
	if (e == ERR_NOT_FOUND)
		return ERR_OK; /* the store is of before */
	if (e == ERR_OK)
		e = sql_piece_count(c->conn, &counted);
	if (e == ERR_OK && said != counted) {
		char text[100];
		(void)snprintf(text, sizeof(text),
			"the pieces of blobs have %" PRIu64 " bytes, the count says %" PRIu64,
			counted, said);
		tell(c, text);
	}
	return c->findings > 0 ? ERR_OK : e;
}

static enum err check_sum(struct checker *c)
{
	static const char sizes[] = "SELECT ifnull(sum(size),0) FROM item WHERE kind=5";
	uint64_t counted;
	enum err e = sql_file_bytes(c->conn, &counted);
	sqlite3_stmt *st = NULL;
	if (e == ERR_OK)
		e = sql_error(c->conn->db, sqlite3_prepare_v2(c->conn->db, sizes, -1, &st, NULL));
	if (e == ERR_OK && sqlite3_step(st) == SQLITE_ROW &&
		(uint64_t)sqlite3_column_int64(st, 0) != counted) {
		char text[100];
		(void)snprintf(text, sizeof(text),
			"the files have %lld bytes, the count says %" PRIu64,
			(long long)sqlite3_column_int64(st, 0), counted);
		tell(c, text);
	}
	(void)sqlite3_finalize(st);
	return c->findings > 0 ? ERR_OK : e; /* what it cannot read was told */
}

/* The check of the structure reads each page, then each item's page again. */
static enum err run_structure(struct checker *c)
{
	c->done = 0;
	c->total = 2 * sql_pragma(c->conn, "PRAGMA page_count");
	if (c->progress) {
		c->progress(c->arg, STORE_CHECK_PAGES, 0, c->total);
		sql_page_file_watch(c->conn->db, on_read, c);
	}
	enum err e = check_structure(c);
	sql_page_file_watch(c->conn->db, NULL, NULL);
	return e;
}

static enum err run_queries(struct checker *c)
{
	uint64_t items = 0, bytes = 0;
	if (c->progress) {
		items = sql_pragma(c->conn, "SELECT count(*) FROM item");
		(void)sql_file_bytes(c->conn, &bytes);
	}
	uint64_t chunks = bytes / SQL_CHUNK;
	c->done = 0;
	c->total = items * ARRAY_LEN(item_queries) + chunks;
	enum err e = run_each(c, file_queries, ARRAY_LEN(file_queries), 0);
	if (e == ERR_OK)
		e = run_each(c, item_queries, ARRAY_LEN(item_queries), items);
	return e == ERR_OK ? run_each(c, chunk_queries, ARRAY_LEN(chunk_queries), chunks) : e;
}

static enum err run_all(struct checker *c)
{
	enum err e = run_structure(c);
	if (e == ERR_OK && !c->stopped)
		e = run_queries(c);
	if (e == ERR_OK && !c->stopped)
		e = check_sum(c);
	if (e == ERR_OK)
		e = check_pieces(c);
	return e;
}

enum err sql_check(struct store *s, store_check_fn fn, store_progress_fn progress, void *arg)
{
	struct checker c = { .store = sql_of(s), .fn = fn, .progress = progress, .arg = arg };
	struct store_view *v;
	enum err e = store_view_hold(s, &v);
	if (e == ERR_CORRUPT) {
		tell_unreadable(&c, e);
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
