/* SPDX-License-Identifier: MIT
 * A process whose threads go through the cycle of blob_cycle.h is killed at random moments.  After
 * each kill the store is sound, and the blobs of each thread are as after an operation that it asked
 * for, the last acknowledged one or a later one. */
#include "blob_cycle.h"
#include "killed_child.h"
#include "service/blobs/upload.h"
#include "service/check/verify.h"
#include "service/core/accounts.h"
#include "store/engines.h"

#include <pthread.h>
#include <stdlib.h>

#define KILLS 12
#define KILLS_LONG 500 /* with ROWFS_BLOB_KILLS=1 */
#define WORKERS 3

struct report {
	unsigned writer, number;
	bool done; /* else it is asked for */
};

static char path[64];
static struct service *service;
static uint64_t account;
static unsigned asked[WORKERS], done[WORKERS];

static void must(enum err e, const char *what)
{
	if (e != ERR_OK)
		errx(2, "%s: %s", what, err_symbol(e));
}

/* As a server opens it. */
static void open_service(void)
{
	struct store *store;
	struct item it = { 0 };
	must(store_open(path, 0, &store, NULL, NULL), "store_open");
	must(service_new(store, &service), "service_new");
	must(blob_uploads_drop(service), "blob_uploads_drop");
	enum err e = account_create(service, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, NULL, NULL);
	must(e == ERR_ACCOUNT_EXISTS ? ERR_OK : e, "account_create");
	must(account_find(service, SPAN_LIT("acct"), &it), "account_find");
	account = it.id;
	item_fini(&it);
}

struct worker {
	int pipe;
	unsigned writer;
};

static void tell(const struct worker *w, unsigned number, bool is_done)
{
	struct report r = { .writer = w->writer, .number = number, .done = is_done };
	if (write(w->pipe, &r, sizeof(r)) != sizeof(r))
		_exit(0);
}

static void *work(void *arg)
{
	const struct worker *w = arg;
	for (unsigned number = done[w->writer] + 1;; number++) {
		tell(w, number, false);
		must(blob_cycle_do(service, account, w->writer, number, NULL),
			blob_cycle_name(number));
		tell(w, number, true);
	}
	return NULL;
}

static void run(int to)
{
	struct worker workers[WORKERS];
	pthread_t threads[WORKERS];
	open_service();
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){ .pipe = to, .writer = i };
		if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
			_exit(2);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		(void)pthread_join(threads[i], NULL);
}

static void hear(const void *report)
{
	const struct report *r = report;
	(r->done ? done : asked)[r->writer] = r->number;
}

/* Then the threads go on behind the operation that is there. */
static void check(void)
{
	struct verify_counts counts;
	open_service();
	CHECK_ERR(service_verify(service, NULL, NULL, NULL, &counts), ERR_OK);
	for (unsigned i = 0; i < WORKERS; i++) {
		char state[BLOB_CYCLE_STATE];
		unsigned number = 0;
		CHECK_ERR(blob_cycle_tell(service, account, i, state), ERR_OK);
		CHECK(blob_cycle_find(state, asked[i], &number));
		CHECK(number >= done[i]);
		done[i] = number;
	}
	service_free(service);
}

TEST(a_kill_loses_no_blob_and_leaves_no_half_one)
{
	unsigned random = 7, kills = getenv("ROWFS_BLOB_KILLS") != NULL ? KILLS_LONG : KILLS;
	(void)snprintf(path, sizeof(path), "/tmp/rowfs-blob-kill-%d", (int)getpid());
	must(store_create(path, NULL), "store_create");
	for (unsigned i = 0; i < kills && check_failures == 0; i++) {
		random = random * 1103515245 + 12345;
		run_and_kill(run, sizeof(struct report), hear, (random >> 16) % 200);
		check();
	}
	for (unsigned i = 0; i < WORKERS; i++)
		CHECK(done[i] > 2 * BLOB_STEPS);
	remove_store(path);
}

RUN_TESTS(T(a_kill_loses_no_blob_and_leaves_no_half_one))
