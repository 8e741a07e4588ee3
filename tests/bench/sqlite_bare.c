/* SPDX-License-Identifier: MIT
 * Bare SQLite with the tables, pragmas and statements of the store, and nothing else: no
 * rules, no checks, no JSON.  What rowfs costs over it is the ratio to these figures.  The
 * input is NDJSON in the one form that a prefix can be cut from, so that reading it costs
 * next to nothing: {"PartitionKey":"P","RowKey":"R",...}, partitions together, compact. */
#include <sqlite3.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SET_ROWS 1000
#define SET_BYTES (4u << 20)
#define KEY_MAX 1024
#define BODY_MAX (2u << 20)
#define READ_MAX (4u << 20)
#define TABLE_ID 1100
#define FIRST_ID 2000

static const char pragmas[] = "PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=OFF;"
			      "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
			      "PRAGMA wal_autocheckpoint=4000; PRAGMA journal_size_limit=67108864;"
			      "PRAGMA cache_size=-32768";

static const char tables[] =
	"CREATE TABLE item("
	" parent INTEGER NOT NULL, class INTEGER NOT NULL, key BLOB NOT NULL,"
	" id INTEGER NOT NULL, kind INTEGER NOT NULL, version INTEGER NOT NULL,"
	" edition INTEGER, size INTEGER, flags INTEGER, attrs BLOB, name BLOB,"
	" PRIMARY KEY(parent,class,key)) WITHOUT ROWID, STRICT;"
	"CREATE TABLE obj("
	" id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, class INTEGER NOT NULL,"
	" key BLOB NOT NULL, body BLOB) STRICT";

#define INSERT_ITEM \
	"INSERT INTO item(parent,class,key,id,kind,version,edition,size,flags)" \
	" VALUES(?1,0,?2,?3,?4,?5,1,?6,4)"
#define INSERT_OBJ "INSERT INTO obj(id,parent,class,key,body) VALUES(?1,?2,0,?3,?4)"
#define COUNT_CHILDREN "UPDATE item SET size=?3 WHERE parent=?1 AND class=0 AND key=?2"
#define ALL_COLUMNS \
	"i.id,i.parent,i.class,i.key,i.kind,i.version,i.edition,i.size,i.flags,i.attrs,i.name"
#define CHILDREN " WHERE i.parent=?1 AND i.class=0 AND i.key"
#define WITH_BODY " FROM item i CROSS JOIN obj o ON o.id=i.id"
#define KIND_PARTITION 3
#define KIND_ROW 4

struct text {
	const char *p;
	size_t n;
};

static sqlite3 *db;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "sqlite_bare: %s: %s\n", what, db ? sqlite3_errmsg(db) : "");
	exit(1);
}

static void run(const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail(sql);
}

static sqlite3_stmt *prepare(const char *sql)
{
	sqlite3_stmt *st;
	if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &st, NULL) != SQLITE_OK)
		fail(sql);
	return st;
}

static void step(sqlite3_stmt *st)
{
	if (sqlite3_step(st) != SQLITE_DONE)
		fail("step");
	(void)sqlite3_reset(st);
}

static void bind(sqlite3_stmt *st, int at, struct text t)
{
	(void)sqlite3_bind_blob64(st, at, t.p, t.n, SQLITE_STATIC);
}

static double seconds(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void report(uint64_t n, double since)
{
	printf("%llu %.6f\n", (unsigned long long)n, seconds() - since);
}

static void open_db(const char *path)
{
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	if (sqlite3_open_v2(path, &db,
		    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
		    NULL) != SQLITE_OK)
		fail(path);
	run(pragmas);
}

/* ---- loading ---- */

struct loader {
	sqlite3_stmt *item, *obj, *count;
	int64_t id, partition, children;
	char key[KEY_MAX]; /* of the partition */
	size_t key_n;
	int64_t version;
	size_t rows, bytes; /* of the transaction */
	char *body;
};

static void insert(struct loader *l, int64_t parent, int kind, struct text key, struct text body)
{
	(void)sqlite3_bind_int64(l->item, 1, parent);
	bind(l->item, 2, key);
	(void)sqlite3_bind_int64(l->item, 3, l->id);
	(void)sqlite3_bind_int(l->item, 4, kind);
	(void)sqlite3_bind_int64(l->item, 5, l->version++);
	(void)sqlite3_bind_int64(l->item, 6, (int64_t)body.n);
	step(l->item);
	(void)sqlite3_bind_int64(l->obj, 1, l->id++);
	(void)sqlite3_bind_int64(l->obj, 2, parent);
	bind(l->obj, 3, key);
	if (body.n > 0)
		bind(l->obj, 4, body);
	else
		(void)sqlite3_bind_null(l->obj, 4);
	step(l->obj);
}

static void write_count(struct loader *l)
{
	if (l->partition == 0)
		return;
	(void)sqlite3_bind_int64(l->count, 1, TABLE_ID);
	bind(l->count, 2, (struct text){ l->key, l->key_n });
	(void)sqlite3_bind_int64(l->count, 3, l->children);
	step(l->count);
}

static void commit(struct loader *l)
{
	if (l->rows == 0)
		return;
	write_count(l);
	run("COMMIT");
	l->rows = l->bytes = 0;
}

static void enter_partition(struct loader *l, struct text pk)
{
	if (l->partition != 0 && l->key_n == pk.n && memcmp(l->key, pk.p, pk.n) == 0)
		return;
	if (pk.n > sizeof(l->key))
		fail("key too long");
	write_count(l);
	memcpy(l->key, pk.p, pk.n);
	l->key_n = pk.n;
	l->children = 0;
	l->partition = l->id;
	insert(l, TABLE_ID, KIND_PARTITION, pk, (struct text){ "", 0 });
}

/* What stands between `before` and the next quote; *line goes on behind it. */
static struct text cut(struct text *line, const char *before)
{
	size_t n = strlen(before);
	if (line->n < n || memcmp(line->p, before, n) != 0)
		fail("not in the form that is read here");
	const char *from = line->p + n, *end = line->p + line->n;
	const char *quote = memchr(from, '"', (size_t)(end - from));
	if (quote == NULL)
		fail("no end of a string");
	*line = (struct text){ quote + 1, (size_t)(end - quote - 1) };
	return (struct text){ from, (size_t)(quote - from) };
}

/* The document as it is stored: without keys, with its line end. */
static struct text document(struct loader *l, struct text rest)
{
	size_t skip = rest.n > 0 && rest.p[0] == ',';
	if (rest.n + 2 > BODY_MAX)
		fail("row too large");
	l->body[0] = '{';
	memcpy(l->body + 1, rest.p + skip, rest.n - skip);
	l->body[rest.n - skip + 1] = '\n';
	return (struct text){ l->body, rest.n - skip + 2 };
}

static void take_line(struct loader *l, struct text line)
{
	size_t all = line.n;
	struct text pk = cut(&line, "{\"PartitionKey\":\"");
	struct text rk = cut(&line, ",\"RowKey\":\"");
	if (l->rows == 0)
		run("BEGIN IMMEDIATE");
	enter_partition(l, pk);
	insert(l, l->partition, KIND_ROW, rk, document(l, line));
	l->children++;
	l->bytes += all;
	if (++l->rows == SET_ROWS || l->bytes > SET_BYTES)
		commit(l);
}

/* Reads on where the buffer ends in the middle of a line; returns the number of rows. */
static uint64_t take_file(struct loader *l, int fd, char *buf)
{
	size_t have = 0;
	uint64_t n = 0;
	ssize_t got;
	while ((got = read(fd, buf + have, READ_MAX - have)) > 0) {
		char *p = buf, *end = buf + have + (size_t)got, *eol;
		for (; (eol = memchr(p, '\n', (size_t)(end - p))) != NULL; p = eol + 1, n++)
			take_line(l, (struct text){ p, (size_t)(eol - p) });
		have = (size_t)(end - p);
		memmove(buf, p, have);
	}
	if (got < 0 || have > 0)
		fail("the input ends in the middle of a row");
	return n;
}

static void load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct loader l = { .id = FIRST_ID, .version = 1, .body = malloc(BODY_MAX) };
	char *buf = malloc(READ_MAX);
	if (fd < 0 || l.body == NULL || buf == NULL)
		fail(path);
	run(tables);
	l.item = prepare(INSERT_ITEM);
	l.obj = prepare(INSERT_OBJ);
	l.count = prepare(COUNT_CHILDREN);
	double start = seconds();
	uint64_t n = take_file(&l, fd, buf);
	commit(&l);
	report(n, start);
	(void)sqlite3_finalize(l.item);
	(void)sqlite3_finalize(l.obj);
	(void)sqlite3_finalize(l.count);
	free(l.body);
	free(buf);
	(void)close(fd);
}

/* ---- reading ---- */

static uint64_t sum;

/* All of a row that the engine hands out, looked at once. */
static void look_at(sqlite3_stmt *st, bool body)
{
	(void)sqlite3_column_blob(st, 3);
	sum += (uint64_t)sqlite3_column_bytes(st, 3);
	for (int i = 0; i < 9; i++)
		sum += i == 3 ? 0 : (uint64_t)sqlite3_column_int64(st, i);
	if (!body)
		return;
	const unsigned char *p = sqlite3_column_blob(st, 11);
	int n = sqlite3_column_bytes(st, 11);
	sum += n > 0 ? p[0] + p[n - 1] : 0;
}

/* All rows in key order, partition by partition. */
static void scan(bool body)
{
	sqlite3_stmt *partitions =
		prepare("SELECT " ALL_COLUMNS " FROM item i" CHILDREN ">=x'' ORDER BY i.key");
	sqlite3_stmt *rows = body
		? prepare("SELECT " ALL_COLUMNS ",o.body" WITH_BODY CHILDREN ">=x'' ORDER BY i.key")
		: prepare("SELECT " ALL_COLUMNS " FROM item i" CHILDREN ">=x'' ORDER BY i.key");
	double start = seconds();
	uint64_t n = 0;
	run("BEGIN");
	(void)sqlite3_bind_int64(partitions, 1, TABLE_ID);
	while (sqlite3_step(partitions) == SQLITE_ROW) {
		look_at(partitions, false);
		(void)sqlite3_bind_int64(rows, 1, sqlite3_column_int64(partitions, 0));
		for (; sqlite3_step(rows) == SQLITE_ROW; n++)
			look_at(rows, body);
		(void)sqlite3_reset(rows);
	}
	run("COMMIT");
	report(n, start);
	(void)sqlite3_finalize(partitions);
	(void)sqlite3_finalize(rows);
}

/* Ids all over the store, always the same ones. */
static int64_t some_id(uint64_t i, int64_t ids)
{
	return FIRST_ID + (int64_t)(i * UINT64_C(2654435761) % (uint64_t)ids);
}

static int64_t count_ids(void)
{
	sqlite3_stmt *st = prepare("SELECT max(id) FROM obj");
	if (sqlite3_step(st) != SQLITE_ROW)
		fail("count");
	int64_t n = sqlite3_column_int64(st, 0) - FIRST_ID + 1;
	(void)sqlite3_finalize(st);
	return n > 0 ? n : 1;
}

/* By id, as a file of the mount is opened: its place, then the row there with its document. */
static void get(uint64_t n)
{
	sqlite3_stmt *st = prepare("SELECT " ALL_COLUMNS ",o.body FROM obj o CROSS JOIN item i ON"
				   " i.parent=o.parent AND i.class=o.class AND i.key=o.key"
				   " WHERE o.id=?1");
	int64_t ids = count_ids();
	double start = seconds();
	for (uint64_t i = 0; i < n; i++) {
		(void)sqlite3_bind_int64(st, 1, some_id(i, ids));
		if (sqlite3_step(st) == SQLITE_ROW)
			look_at(st, true);
		(void)sqlite3_reset(st);
	}
	report(n, start);
	(void)sqlite3_finalize(st);
}

/* A row's new content, so many of them a transaction, without looking at what was there. */
static void put(uint64_t n, uint64_t set)
{
	sqlite3_stmt *item =
		prepare("UPDATE item SET version=?2,edition=edition+1,size=?3 WHERE"
			" (parent,class,key)=(SELECT parent,class,key FROM obj WHERE id=?1)");
	sqlite3_stmt *obj = prepare("UPDATE obj SET body=?2 WHERE id=?1 AND body IS NOT NULL");
	sqlite3_stmt *old = prepare("SELECT length(body) FROM obj WHERE id=?1");
	int64_t ids = count_ids();
	char *body = malloc(BODY_MAX);
	if (body == NULL)
		fail("memory");
	memset(body, 'x', BODY_MAX);
	double start = seconds();
	for (uint64_t i = 0; i < n; i++) {
		int64_t id = some_id(i, ids);
		if (i % set == 0)
			run("BEGIN IMMEDIATE");
		(void)sqlite3_bind_int64(old, 1, id);
		int64_t size = sqlite3_step(old) == SQLITE_ROW ? sqlite3_column_int64(old, 0) : 0;
		(void)sqlite3_reset(old);
		(void)sqlite3_bind_int64(item, 1, id);
		(void)sqlite3_bind_int64(item, 2, (int64_t)i);
		(void)sqlite3_bind_int64(item, 3, size);
		step(item);
		(void)sqlite3_bind_int64(obj, 1, id);
		bind(obj, 2, (struct text){ body, (size_t)size });
		step(obj);
		if (i % set == set - 1 || i == n - 1)
			run("COMMIT");
	}
	report(n, start);
	(void)sqlite3_finalize(item);
	(void)sqlite3_finalize(obj);
	(void)sqlite3_finalize(old);
	free(body);
}

static uint64_t number(const char *text)
{
	uint64_t n = text != NULL ? strtoull(text, NULL, 10) : 0;
	return n > 0 ? n : 1;
}

/* Prints the number of rows and the seconds for them, without opening and closing. */
int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	const char *arg = argc > 3 ? argv[3] : NULL;
	open_db(argc > 2 ? argv[2] : ":memory:");
	if (strcmp(what, "load") == 0 && arg != NULL) {
		load(arg);
	} else if (strcmp(what, "scan") == 0 || strcmp(what, "keys") == 0) {
		scan(what[0] == 's');
	} else if (strcmp(what, "get") == 0) {
		get(number(arg));
	} else if (strcmp(what, "put") == 0) {
		put(number(arg), number(argc > 4 ? argv[4] : NULL));
	} else {
		fprintf(stderr,
			"usage: sqlite_bare load DB NDJSON | scan DB | keys DB | get DB N"
			" | put DB N ROWS_A_COMMIT\n");
		return 2;
	}
	(void)sqlite3_close(db);
	return sum == 1; /* it was looked at */
}
