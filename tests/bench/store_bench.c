/* SPDX-License-Identifier: MIT
 * What the SQLite engine costs over bare SQLite: bulk loading in key order, looking up by
 * key, opening by id, listing.  Not a test: it prints figures.  Argument: number of rows. */
#include "base/clock.h"
#include "store/engines.h"

#include <sqlite3.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SET 1000
#define BODY 300
#define FILE_NAME "store_bench.db"

static char body[BODY];

static void report(const char *what, uint64_t start, uint64_t n)
{
	double us = (double)(clock_mono_us() - start);
	printf("%-28s %9.3f us each %10.0f /s\n", what, us / (double)n, (double)n * 1e6 / us);
}

static void must(enum err e)
{
	if (e == ERR_OK)
		return;
	printf("failed: %s\n", err_text(e));
	exit(1);
}

static uint64_t make(struct store *s, struct place at, enum item_kind kind)
{
	struct change c = { .op = CHANGE_PUT,
		.at = at,
		.kind = kind,
		.version = 1,
		.attrs = ATTRS_UNSET,
		.body = SPAN_LIT("k") };
	must(store_apply(s, &c, 1, false, NULL));
	uint64_t id = c.now.id;
	changes_fini(&c, 1);
	return id;
}

static uint64_t load(struct store *s, uint64_t table, unsigned rows, uint64_t *first)
{
	static struct change set[SET];
	static char keys[SET][24];
	uint64_t partition = 0;
	for (unsigned i = 0; i < rows; i += SET) {
		for (unsigned k = 0; k < SET; k++) {
			(void)snprintf(keys[k], sizeof(keys[k]), "row-%09u", i + k);
			set[k] = (struct change){ .op = CHANGE_PUT,
				.kind = ITEM_ROW,
				.version = 2 + i,
				.attrs = ATTRS_UNSET,
				.body = { body, sizeof(body) },
				.at = { .parent = table,
					.has_pk = true,
					.pk = SPAN_LIT("p"),
					.key = span_of(keys[k]) } };
		}
		must(store_apply(s, set, SET, false, NULL));
		if (i == 0)
			*first = set[0].now.id;
		partition = set[0].now.parent;
		changes_fini(set, SET);
	}
	return partition;
}

static bool count(void *arg, const struct item *it)
{
	*(uint64_t *)arg += it->size;
	return true;
}

static void read_back(struct store *s, uint64_t partition, uint64_t first, unsigned rows)
{
	char key[24];
	struct item it;
	const unsigned n = 100000;
	uint64_t start = clock_mono_us(), sum = 0;
	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(key, sizeof(key), "row-%09u", (i * 7919u) % rows);
		must(store_child(s, NULL, partition, CLASS_KEYED, span_of(key), 0, &it));
		item_fini(&it);
	}
	report("child by key", start, n);
	start = clock_mono_us();
	for (unsigned i = 0; i < n; i++) {
		must(store_get(s, NULL, first + (i * 7919u) % rows, WANT_BODY, &it));
		item_fini(&it);
	}
	report("get by id with body", start, n);
	start = clock_mono_us();
	must(store_list(s, NULL, partition, CLASS_KEYED, (struct span){ NULL, 0 }, false,
		WANT_ATTRS, count, &sum));
	report("list", start, rows);
	start = clock_mono_us();
	must(store_list(s, NULL, partition, CLASS_KEYED, (struct span){ NULL, 0 }, false, WANT_BODY,
		count, &sum));
	report("list with body", start, rows);
}

static void single_puts(struct store *s, uint64_t table, unsigned rows, bool durable)
{
	char key[24];
	const unsigned n = durable ? 2000 : 20000;
	uint64_t start = clock_mono_us();
	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(key, sizeof(key), "row-%09u", (i * 7919u) % rows);
		body[i % BODY]++;
		struct change c = { .op = CHANGE_PUT,
			.kind = ITEM_ROW,
			.attrs = ATTRS_UNSET,
			.version = (int64_t)store_version_floor(s) + 1,
			.body = { body, sizeof(body) },
			.at = { .parent = table,
				.has_pk = true,
				.pk = SPAN_LIT("p"),
				.key = span_of(key) } };
		must(store_apply(s, &c, 1, durable, NULL));
		changes_fini(&c, 1);
	}
	report(durable ? "replace one, durable" : "replace one", start, n);
}

/* The same bytes into one plain table. */
static void bare(unsigned rows)
{
	sqlite3 *db;
	sqlite3_stmt *st;
	char key[24];
	(void)unlink("store_bench_bare.db");
	if (sqlite3_open("store_bench_bare.db", &db) != SQLITE_OK)
		exit(1);
	(void)sqlite3_exec(db,
		"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-32768;"
		"PRAGMA wal_autocheckpoint=4000;"
		"CREATE TABLE t(p INTEGER,k BLOB,version INTEGER,body BLOB,PRIMARY KEY(p,k)) WITHOUT ROWID",
		NULL, NULL, NULL);
	(void)sqlite3_prepare_v2(db, "INSERT INTO t VALUES(1,?1,?2,?3)", -1, &st, NULL);
	uint64_t start = clock_mono_us();
	for (unsigned i = 0; i < rows; i++) {
		if (i % SET == 0)
			(void)sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
		int n = snprintf(key, sizeof(key), "row-%09u", i);
		(void)sqlite3_bind_blob(st, 1, key, n, SQLITE_STATIC);
		(void)sqlite3_bind_int64(st, 2, i);
		(void)sqlite3_bind_blob(st, 3, body, BODY, SQLITE_STATIC);
		(void)sqlite3_step(st);
		(void)sqlite3_reset(st);
		if (i % SET == SET - 1)
			(void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	}
	report("bare insert, 1000 a commit", start, rows);
	(void)sqlite3_finalize(st);
	(void)sqlite3_close(db);
	(void)unlink("store_bench_bare.db");
}

int main(int argc, char **argv)
{
	unsigned rows = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 200000;
	struct store *s;
	struct store_info info;
	uint64_t first = 0;
	rows = rows < SET ? SET : rows - rows % SET;
	bare(rows);
	(void)unlink(FILE_NAME);
	must(store_create(FILE_NAME, NULL));
	must(store_open(FILE_NAME, 0, &s, NULL, NULL));
	uint64_t account =
		make(s, (struct place){ .parent = STORE_ROOT, .key = SPAN_LIT("a") }, ITEM_ACCOUNT);
	uint64_t table =
		make(s, (struct place){ .parent = account, .key = SPAN_LIT("t") }, ITEM_TABLE);
	uint64_t start = clock_mono_us();
	uint64_t partition = load(s, table, rows, &first);
	report("put, 1000 a set", start, rows);
	store_close(s);
	must(store_open(FILE_NAME, 0, &s, NULL, NULL));
	store_info(s, &info);
	printf("%" PRIu64 " bytes a row on disk\n", info.bytes / rows);
	read_back(s, partition, first, rows);
	single_puts(s, table, rows, false);
	single_puts(s, table, rows, true);
	store_close(s);
	(void)unlink(FILE_NAME);
	return 0;
}
