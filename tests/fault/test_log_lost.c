/* SPDX-License-Identifier: MIT
 * Two ways in which SQLite before 3.51.3 loses commits that it told of, both by its log.  The
 * engine keeps away from them; these tests lead it there. */
#include "../unit/check.h"
#include "calls.h"
#include "store/engines.h"

#include <sqlite3.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64], path[80];
static struct store *store;
static uint64_t table;
static _Atomic int64_t version;
static sqlite3 *writer; /* the engine's first connection */

static int on_open(sqlite3 *db, const char **error, const struct sqlite3_api_routines *api)
{
	(void)error;
	(void)api;
	if (writer == NULL)
		writer = db;
	return SQLITE_OK;
}

static struct item_ref row_at(const char *key)
{
	return (struct item_ref){
		.parent = table, .has_pk = true, .pk = SPAN_LIT("p"), .key = span_of(key)
	};
}

static struct change put(enum item_kind kind, struct item_ref at, struct span body)
{
	return (struct change){ .op = CHANGE_PUT,
		.at = at,
		.kind = kind,
		.name = SPAN_LIT("tab"),
		.attrs = ATTRS_UNSET,
		.body = body,
		.item_flags = ITEM_MADE };
}

static enum err apply(struct change *c, size_t n)
{
	enum err e;
	do {
		for (size_t i = 0; i < n; i++)
			c[i].version = atomic_fetch_add(&version, 1) + 1;
		e = store_apply(store, c, n, true, NULL);
	} while (e == ERR_STALE_VERSION);
	if (e == ERR_OK)
		changes_fini(c, n);
	return e;
}

static enum err put_row(const char *key)
{
	struct change c = put(ITEM_ROW, row_at(key), SPAN_LIT("{}"));
	c.item_flags = 0;
	return apply(&c, 1);
}

static uint64_t make(uint64_t parent, enum item_kind kind)
{
	struct item it = { 0 };
	struct change c = put(kind, (struct item_ref){ .parent = parent, .key = SPAN_LIT("tab") },
		SPAN_LIT("{}"));
	CHECK_ERR(apply(&c, 1), ERR_OK);
	CHECK_ERR(store_child(store, NULL, parent, CLASS_KEYED, SPAN_LIT("tab"), WANT_ATTRS, &it),
		ERR_OK);
	uint64_t id = it.id;
	item_fini(&it);
	return id;
}

static void begin(void)
{
	struct err_detail d;
	(void)snprintf(folder, sizeof(folder), "/tmp/test_log_lost.XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
	(void)snprintf(path, sizeof(path), "%s/store", folder);
	CHECK_ERR(store_create(path, &d), ERR_OK);
	(void)sqlite3_auto_extension((void (*)(void))(uintptr_t)on_open);
	writer = NULL;
	calls_watch(path);
	CHECK_ERR(store_open(path, 0, &store, NULL, &d), ERR_OK);
	table = make(make(STORE_ROOT, ITEM_ACCOUNT), ITEM_TABLE);
}

static void end(void)
{
	static const char *const tails[] = { "", "-wal", "-shm", "2", "2-wal", "2-shm" };
	char name[100];
	(void)sqlite3_cancel_auto_extension((void (*)(void))(uintptr_t)on_open);
	store_close(store);
	for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
		(void)snprintf(name, sizeof(name), "%s%s", path, tails[i]);
		(void)unlink(name);
	}
	CHECK(rmdir(folder) == 0);
}

/* ---- a refused change set that was partly in the log ---- */

static void *put_in_thread(void *key)
{
	CHECK_ERR(put_row(key), ERR_OK);
	return NULL;
}

#define LARGE 40000
#define ROWS 300 /* on several pages */
#define MANY 12
static char small_keys[ROWS][8], large_keys[MANY][8];

static void fill(void)
{
	static char body[200];
	static struct change c[ROWS];
	memset(body, ' ', sizeof(body));
	for (int i = 0; i < ROWS; i++) {
		(void)snprintf(small_keys[i], sizeof(small_keys[i]), "m%03d", i);
		c[i] = put(ITEM_ROW, row_at(small_keys[i]), span_make(body, sizeof(body)));
		c[i].item_flags = 0;
	}
	CHECK_ERR(apply(c, ROWS), ERR_OK);
	for (int i = 0; i < MANY; i++)
		(void)snprintf(large_keys[i], sizeof(large_keys[i]), "x%03d", i);
}

/* Larger than the cache; rows of the second half are written twice; and refused in the end.
 * n: of the changes. */
static void large_set(struct change c[2 * MANY + 1], size_t *ret_n, bool refused)
{
	static char bodies[3][LARGE];
	size_t n = 0;
	for (int i = 0; i < 3; i++)
		memset(bodies[i], 'a' + i, LARGE);
	for (int i = 0; i < 2 * MANY; i++) {
		if (i >= MANY && (!refused || i < MANY + MANY / 2))
			continue;
		c[n] = put(ITEM_ROW, row_at(large_keys[i % MANY]),
			span_make(bodies[refused ? 1 + i / MANY : 0], LARGE));
		c[n++].item_flags = 0;
	}
	if (refused)
		c[n++] = (struct change){ .op = CHANGE_DELETE, .at = row_at("nothing") };
	*ret_n = n;
}

static int shared; /* change sets of the writer's transaction, where they are several */

static int on_statement(unsigned type, void *arg, void *statement, void *sql)
{
	(void)type, (void)arg, (void)statement;
	if (strncmp(sql, "SAVEPOINT", 9) == 0)
		shared++;
	return 0;
}

static void *be_refused(void *arg)
{
	struct change c[2 * MANY + 1];
	size_t n;
	(void)arg;
	large_set(c, &n, true);
	CHECK_ERR(apply(c, n), ERR_NOT_FOUND);
	return NULL;
}

static void copy(const char *tail)
{
	char from[100], to[100], bytes[65536];
	(void)snprintf(from, sizeof(from), "%s%s", path, tail);
	(void)snprintf(to, sizeof(to), "%s2%s", path, tail);
	FILE *in = fopen(from, "rbe"), *out = fopen(to, "wbe");
	REQUIRE(in != NULL && out != NULL);
	for (size_t n; (n = fread(bytes, 1, sizeof(bytes), in)) > 0;)
		CHECK(fwrite(bytes, 1, n, out) == n);
	CHECK(fclose(in) == 0 && fclose(out) == 0);
}

/* Bytes of a row; -1: it is not there. */
static int64_t size_of(struct store *s, const char *key)
{
	struct item p = { 0 }, it = { 0 };
	enum err e = store_child(s, NULL, table, CLASS_KEYED, SPAN_LIT("p"), WANT_ATTRS, &p);
	if (e == ERR_OK)
		e = store_child(s, NULL, p.id, CLASS_KEYED, span_of(key), WANT_ATTRS, &it);
	int64_t n = e == ERR_OK ? (int64_t)it.size : -1;
	item_fini(&p);
	item_fini(&it);
	return n;
}

/* One commit waits in its write to the log; those that come meanwhile share the next, if they
 * come in time. */
static void share_a_commit(unsigned us)
{
	pthread_t threads[3];
	calls_strike(CALLS_STALL, CALLS_WRITE, false, 1, 0);
	CHECK(pthread_create(&threads[0], NULL, put_in_thread, small_keys[0]) == 0);
	while (calls_now()->struck == 0)
		(void)usleep(1000);
	CHECK(pthread_create(&threads[1], NULL, put_in_thread, small_keys[1]) == 0);
	(void)usleep(us);
	CHECK(pthread_create(&threads[2], NULL, be_refused, NULL) == 0);
	(void)usleep(us);
	(void)calls_stop();
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

TEST(a_refused_set_takes_no_commit_with_it)
{
	struct change c[2 * MANY + 1];
	size_t n;
	struct store *copied = NULL;
	struct err_detail d;
	begin();
	CHECK(sqlite3_exec(writer, "PRAGMA cache_size=12", NULL, NULL, NULL) == SQLITE_OK);
	fill();
	large_set(c, &n, false);
	CHECK_ERR(apply(c, n), ERR_OK);
	CHECK(sqlite3_trace_v2(writer, SQLITE_TRACE_STMT, on_statement, NULL) == SQLITE_OK);
	/* Nothing tells that they wait: on a busy machine it takes more than one attempt. */
	shared = 0;
	for (unsigned us = 100000; shared < 2 && us <= 6400000; us *= 2) {
		shared = 0;
		share_a_commit(us);
	}
	CHECK_EQ_INT(shared, 2);
	CHECK_ERR(put_row("third"), ERR_OK);
	copy("");
	copy("-wal");
	char name[100];
	(void)snprintf(name, sizeof(name), "%s2", path);
	CHECK_ERR(store_open(name, 0, &copied, NULL, &d), ERR_OK);
	if (copied != NULL) {
		CHECK_EQ_INT(size_of(copied, small_keys[0]), 2);
		CHECK_EQ_INT(size_of(copied, small_keys[1]), 2);
		CHECK_EQ_INT(size_of(copied, "third"), 2);
	}
	store_close(copied);
	end();
}

/* ---- the log begins anew while a view's end copies it ---- */

static bool racing, begins_anew, by_another;

/* So that it can be told from the log's header: where it begins anew there is another one. */
static void head_of_log(unsigned char head[32])
{
	char name[100];
	(void)snprintf(name, sizeof(name), "%s-wal", path);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pread(fd, head, 32, 0) == 32);
	(void)close(fd);
}

typedef int (*checkpoint_fn)(sqlite3 *, const char *, int, int *, int *);

/* Stands in SQLite's place for the engine: a copy by another connection than the writer's finds
 * that all was copied meanwhile, and that somebody commits. */
int sqlite3_wal_checkpoint_v2(sqlite3 *db, const char *name, int mode, int *frames, int *done)
{
	static checkpoint_fn real;
	unsigned char before[32], after[32];
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "sqlite3_wal_checkpoint_v2");
	if (racing && db != writer) {
		racing = false;
		by_another = true;
		begins_anew = mode != SQLITE_CHECKPOINT_PASSIVE;
		head_of_log(before);
		CHECK(real(writer, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) == SQLITE_OK);
		CHECK_ERR(put_row("meanwhile"), ERR_OK);
		head_of_log(after);
		begins_anew = begins_anew || memcmp(before, after, sizeof(before)) != 0;
		racing = true;
	}
	return real(db, name, mode, frames, done);
}

TEST(the_log_does_not_begin_anew_while_the_end_of_a_view_copies_it)
{
	static char body[LARGE];
	struct store_view *v = NULL;
	struct err_detail d;
	begin();
	CHECK_ERR(store_view_hold(store, &v), ERR_OK);
	for (int i = 0; i < 40; i++) { /* more than a MiB */
		memset(body, i, sizeof(body));
		struct change c = put(ITEM_ROW, row_at("a"), span_make(body, sizeof(body)));
		c.item_flags = 0;
		CHECK_ERR(apply(&c, 1), ERR_OK);
	}
	racing = true;
	store_view_close(store, v);
	racing = false;
	CHECK(by_another); /* else this tests nothing */
	CHECK(!begins_anew);
	store_close(store);
	store = NULL;
	CHECK_ERR(store_open(path, 0, &store, NULL, &d), ERR_OK);
	CHECK_EQ_INT(size_of(store, "meanwhile"), 2);
	end();
}

/* clang-format off */
RUN_TESTS(
	T(a_refused_set_takes_no_commit_with_it),
	T(the_log_does_not_begin_anew_while_the_end_of_a_view_copies_it))
/* clang-format on */
