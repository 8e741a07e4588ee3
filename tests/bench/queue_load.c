/* SPDX-License-Identifier: MIT
 * Messages a second through the service, or through bare SQLite with one table as one would write a
 * queue there: id, time, count, text, an index by time.  Each operation is a transaction of its
 * own, in both.  Prints a line for each phase: its name, operations a second; with one thread a
 * second of CPU time.
 *
 *	queue_load ours|bare PATH MESSAGES DEPTH THREADS [BESIDE]
 *
 * DEPTH messages are there before, and stay; they are visible and come after the others.  BESIDE
 * messages are in another queue of the store (ours). */
#include "base/clock.h"
#include "service/core/accounts.h"
#include "service/queue/messages.h"
#include "service/queue/queues.h"
#include "store/engines.h"

#include <sqlite3.h>

#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEXT_BYTES 100
#define HIDDEN_S 3600
#define THREADS_MAX 64

static char text[TEXT_BYTES];
static size_t messages, threads;

struct taken {
	char id[MESSAGE_ID_CHARS + 1], receipt[MESSAGE_RECEIPT_CHARS + 1];
	sqlite3_int64 row;
	int64_t count;
};
static struct taken *taken; /* [messages] */

/* ---- ours ---- */

static struct service *service;
static uint64_t account, queue;

static void must(enum err e, const char *what)
{
	if (e != ERR_OK)
		errx(1, "%s: %s", what, err_symbol(e));
}

static void ours_open(const char *path)
{
	struct store *store;
	struct item it = { 0 };
	must(store_create(path, NULL), "store_create");
	must(store_open(path, 0, &store, NULL, NULL), "store_open");
	must(service_new(store, &service), "service_new");
	must(account_create(service, ORIGIN_COMMAND, SPAN_LIT("bench"), NULL, NULL, NULL),
		"account_create");
	must(account_find(service, SPAN_LIT("bench"), &it), "account_find");
	account = it.id;
	item_fini(&it);
}

static void ours_queue(const char *name)
{
	bool created;
	must(queue_create(
		     service, ORIGIN_REST, account, span_of(name), SPAN_LIT(""), &created, NULL),
		"queue_create");
	must(queue_id(service, account, span_of(name), &queue), "queue_id");
}

static void ours_put(size_t i)
{
	struct queue_message m;
	(void)i;
	must(message_put(service, ORIGIN_REST, queue, span_make(text, sizeof(text)), 0,
		     MESSAGE_NEVER, false, &m, NULL),
		"message_put");
}

static bool on_taken(void *arg, const struct queue_message *m)
{
	struct taken *t = arg;
	memcpy(t->id, m->id, sizeof(t->id));
	memcpy(t->receipt, m->receipt, sizeof(t->receipt));
	t->count++;
	return true;
}

static void ours_take(size_t i)
{
	while (taken[i].count == 0)
		must(message_take(service, ORIGIN_REST, queue, 1, HIDDEN_S, false, on_taken,
			     &taken[i], NULL),
			"message_take");
}

static void ours_delete(size_t i)
{
	must(message_delete(service, ORIGIN_REST, queue, span_of(taken[i].id),
		     span_of(taken[i].receipt), false, NULL),
		"message_delete");
}

static bool on_peek(void *arg, const struct queue_message *m)
{
	*(size_t *)arg += m->text.n;
	return true;
}

static void ours_peek(size_t i)
{
	size_t n = 0;
	(void)i;
	must(message_peek(service, queue, 1, on_peek, &n), "message_peek");
}

/* ---- bare SQLite: one connection, a lock around it ---- */

static sqlite3 *db;
static pthread_mutex_t db_lock = PTHREAD_MUTEX_INITIALIZER;
static sqlite3_stmt *begin, *commit, *insert, *first, *hide, *drop;

static sqlite3_stmt *prepare(const char *sql)
{
	sqlite3_stmt *st;
	if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &st, NULL) != SQLITE_OK)
		errx(1, "%s: %s", sql, sqlite3_errmsg(db));
	return st;
}

static void step(sqlite3_stmt *st)
{
	if (sqlite3_step(st) != SQLITE_DONE || sqlite3_reset(st) != SQLITE_OK)
		errx(1, "%s", sqlite3_errmsg(db));
}

static void bare_open(const char *path)
{
	static const char schema[] =
		"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-32768;"
		"PRAGMA wal_autocheckpoint=4000;"
		"CREATE TABLE message(id INTEGER PRIMARY KEY, visible INTEGER NOT NULL,"
		" inserted INTEGER NOT NULL, expires INTEGER NOT NULL, taken INTEGER NOT NULL,"
		" receipt INTEGER NOT NULL, body BLOB NOT NULL);"
		"CREATE INDEX by_time ON message(visible,id)";
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	if (sqlite3_open_v2(path, &db,
		    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
		    NULL) != SQLITE_OK ||
		sqlite3_exec(db, schema, NULL, NULL, NULL) != SQLITE_OK)
		errx(1, "%s: %s", path, sqlite3_errmsg(db));
	begin = prepare("BEGIN IMMEDIATE");
	commit = prepare("COMMIT");
	insert = prepare("INSERT INTO message(visible,inserted,expires,taken,receipt,body)"
			 " VALUES(?1,?1,?2,0,?1,?3)");
	first = prepare("SELECT id,taken,body FROM message WHERE visible<=?1 AND expires>?1"
			" ORDER BY visible,id LIMIT 1");
	hide = prepare("UPDATE message SET visible=?2,taken=taken+1,receipt=?3 WHERE id=?1");
	drop = prepare("DELETE FROM message WHERE id=?1 AND receipt=?2");
}

static void bare_put(size_t i)
{
	(void)i;
	pthread_mutex_lock(&db_lock);
	step(begin);
	(void)sqlite3_bind_int64(insert, 1, clock_ticks());
	(void)sqlite3_bind_int64(insert, 2, INT64_MAX);
	(void)sqlite3_bind_blob(insert, 3, text, sizeof(text), SQLITE_STATIC);
	step(insert);
	step(commit);
	pthread_mutex_unlock(&db_lock);
}

static void bare_find(struct taken *t, int64_t now)
{
	char copy[TEXT_BYTES];
	(void)sqlite3_bind_int64(first, 1, now);
	if (sqlite3_step(first) != SQLITE_ROW)
		errx(1, "no message");
	t->row = sqlite3_column_int64(first, 0);
	memcpy(copy, sqlite3_column_blob(first, 2), sizeof(copy));
	(void)sqlite3_reset(first);
}

static void bare_take(size_t i)
{
	struct taken *t = &taken[i];
	pthread_mutex_lock(&db_lock);
	step(begin);
	int64_t now = clock_ticks();
	bare_find(t, now);
	t->count = now;
	(void)sqlite3_bind_int64(hide, 1, t->row);
	(void)sqlite3_bind_int64(hide, 2, now + HIDDEN_S * TICKS_PER_SECOND);
	(void)sqlite3_bind_int64(hide, 3, now);
	step(hide);
	step(commit);
	pthread_mutex_unlock(&db_lock);
}

static void bare_delete(size_t i)
{
	pthread_mutex_lock(&db_lock);
	step(begin);
	(void)sqlite3_bind_int64(drop, 1, taken[i].row);
	(void)sqlite3_bind_int64(drop, 2, taken[i].count);
	step(drop);
	step(commit);
	pthread_mutex_unlock(&db_lock);
}

static void bare_peek(size_t i)
{
	struct taken t;
	(void)i;
	pthread_mutex_lock(&db_lock);
	bare_find(&t, clock_ticks());
	pthread_mutex_unlock(&db_lock);
}

/* ---- phases ---- */

static atomic_size_t next;

static void *work(void *arg)
{
	void (*const *fn)(size_t i) = arg;
	size_t i;
	while ((i = atomic_fetch_add(&next, 1)) < messages)
		(*fn)(i);
	return NULL;
}

static uint64_t cpu_us(void)
{
	struct timespec t;
	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
		err(1, "clock_gettime");
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void phase(const char *name, void (*fn)(size_t i))
{
	pthread_t all[THREADS_MAX];
	uint64_t since = threads > 1 ? clock_mono_us() : cpu_us();
	atomic_store(&next, 0);
	for (size_t i = 1; i < threads; i++)
		if (pthread_create(&all[i], NULL, work, &fn) != 0)
			errx(1, "pthread_create");
	work(&fn);
	for (size_t i = 1; i < threads; i++)
		pthread_join(all[i], NULL);
	uint64_t us = (threads > 1 ? clock_mono_us() : cpu_us()) - since;
	printf("%s %.0f\n", name, (double)messages * 1e6 / (double)(us > 0 ? us : 1));
}

int main(int argc, char **argv)
{
	if (argc != 6 && argc != 7)
		errx(2, "usage: queue_load ours|bare PATH MESSAGES DEPTH THREADS [BESIDE]");
	bool ours = strcmp(argv[1], "ours") == 0;
	messages = strtoul(argv[3], NULL, 10);
	size_t depth = strtoul(argv[4], NULL, 10);
	size_t beside = argc > 6 ? strtoul(argv[6], NULL, 10) : 0;
	threads = strtoul(argv[5], NULL, 10);
	if (messages == 0 || threads == 0 || threads > THREADS_MAX)
		errx(2, "bad number");
	taken = calloc(messages, sizeof(*taken));
	if (taken == NULL)
		errx(1, "out of memory");
	memset(text, 'x', sizeof(text));
	(ours ? ours_open : bare_open)(argv[2]);
	if (ours) {
		ours_queue("beside");
		for (size_t i = 0; i < beside; i++)
			ours_put(i);
		ours_queue("jobs");
	}
	for (size_t i = 0; i < depth; i++)
		(ours ? ours_put : bare_put)(i);
	phase("put", ours ? ours_put : bare_put);
	phase("peek", ours ? ours_peek : bare_peek);
	phase("take", ours ? ours_take : bare_take);
	phase("delete", ours ? ours_delete : bare_delete);
	if (ours)
		service_free(service);
	else
		(void)sqlite3_close_v2(db);
	free(taken);
	return 0;
}
