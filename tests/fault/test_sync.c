/* SPDX-License-Identifier: MIT
 * Durable writers that share syncs of the log: who waits for which sync, and who makes it. */
#include "base/lock.h"
#include "one_store.h"
#include "store/sqlite/set.h"
#include "store/sqlite/store.h"

#include <pthread.h>

#define WRITERS 8
#define LATE 3

/* Of the test that runs: the sync that is held, the one that fails (0: none), and how many there were. */
static _Atomic unsigned held, failing, syncs;

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
	unsigned n = ++syncs;
	while (held == n)
		(void)usleep(500);
	if (failing != n)
		return __real_fdatasync(fd);
	errno = EIO;
	return -1;
}

struct writer {
	pthread_t thread;
	char key[8];
	enum err result;
};

static void *write_one(void *arg)
{
	struct writer *w = arg;
	struct change c = row("p", w->key);
	w->result = store_apply(store, &c, 1, true, NULL);
	changes_fini(&c, 1);
	return NULL;
}

static void start(struct writer *w, size_t n, char name)
{
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(w[i].key, sizeof(w[i].key), "%c%zu", name, i);
		CHECK(pthread_create(&w[i].thread, NULL, write_one, &w[i]) == 0);
	}
}

static void wait_for_sync(unsigned n)
{
	while (syncs != n)
		(void)usleep(500);
}

/* Until so many sets are committed and not yet synced. */
static void wait_unsynced(size_t n)
{
	struct sql_store *st = sql_of(store);
	for (size_t found = n + 1; found != n;) {
		(void)usleep(500);
		found = 0;
		(void)mutex_lock(&st->lock);
		for (const struct sql_set *s = st->unsynced; s; s = s->next)
			found++;
		(void)mutex_unlock(&st->lock);
	}
}

static void join(struct writer *w, size_t n, enum err result)
{
	for (size_t i = 0; i < n; i++) {
		CHECK(pthread_join(w[i].thread, NULL) == 0);
		CHECK_ERR(w[i].result, result);
		CHECK(has_row(w[i].key));
	}
}

/* The first writer's sync is held; the others have committed and wait for the next one. */
static void gather(struct writer *first, struct writer *w)
{
	begin();
	syncs = failing = 0;
	held = 1;
	start(first, 1, 'f');
	wait_for_sync(1);
	start(w, WRITERS, 'w');
	wait_unsynced(1 + WRITERS);
}

TEST(writers_that_wait_share_the_next_sync)
{
	struct writer first, w[WRITERS], late[LATE];
	gather(&first, w);
	held = 2;
	join(&first, 1, ERR_OK);
	wait_for_sync(2);
	start(late, LATE, 'l');
	wait_unsynced(WRITERS + LATE);
	held = 0;
	join(w, WRITERS, ERR_OK);
	join(late, LATE, ERR_OK);
	CHECK_EQ_INT(syncs, 3);
	end();
}

TEST(a_sync_that_fails_is_told_to_all_that_wait_and_none_follows)
{
	struct writer first, w[WRITERS];
	gather(&first, w);
	failing = 1;
	held = 0;
	join(&first, 1, ERR_OUTCOME_UNKNOWN);
	join(w, WRITERS, ERR_OUTCOME_UNKNOWN);
	CHECK_ERR(store_sync(store), ERR_IO);
	CHECK_EQ_INT(syncs, 1);
	failing = 0;
	open_again();
	CHECK_ERR(store_sync(store), ERR_OK);
	end();
}

/* clang-format off */
RUN_TESTS(
	T(writers_that_wait_share_the_next_sync),
	T(a_sync_that_fails_is_told_to_all_that_wait_and_none_follows))
/* clang-format on */
