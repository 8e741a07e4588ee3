/* SPDX-License-Identifier: MIT
 * Commits that are shared: who is in one, who makes it, what each is told. */
#include "shared_commit.h"

#include <dlfcn.h>
#include <errno.h>

TEST(a_read_does_not_wait_for_a_commit)
{
	struct writer w[3];
	begin();
	gather(w);
	CHECK(!has_row("first"));
	(void)calls_stop();
	join(w);
	CHECK(has_row("first") && has_row("second") && has_row("third"));
	end();
}

TEST(without_memory_each_of_a_shared_commit_is_whole_or_refused)
{
	unsigned refused = 0;
	begin();
	for (unsigned n = 1; n <= 60; n++) {
		struct writer w[3];
		open_again();
		gather(w);
		calls_strike_on(CALLS_FAIL, CALLS_MEMORY, false, n, ENOMEM);
		join(w);
		for (int i = 0; i < 3; i++) {
			CHECK(w[i].result == ERR_OK || w[i].result == ERR_NO_MEMORY);
			CHECK(has_row(w[i].key) == (w[i].result == ERR_OK));
			refused += w[i].result != ERR_OK;
			CHECK_ERR(remove_row(w[i].key),
				w[i].result == ERR_OK ? ERR_OK : ERR_NOT_FOUND);
		}
	}
	CHECK(refused > 0);
	CHECK_ERR(store_check(store, NULL, NULL, NULL), ERR_OK);
	end();
}

/* ---- how many share a commit ---- */

#define CROWD 135

/* A first one waits in its write, and behind it these, each in its turn. */
static void queue_behind(struct writer *first, struct writer *w, size_t n, void *(*run)(void *))
{
	*first = (struct writer){ .key = "first" };
	calls_strike(CALLS_STALL, CALLS_WRITE, false, 1, 0);
	CHECK(pthread_create(&first->thread, NULL, write_one, first) == 0);
	while (calls_now()->struck == 0)
		(void)usleep(500);
	for (size_t i = 0; i < n; i++) {
		struct sql_set **tail = queue_tail();
		CHECK(pthread_create(&w[i].thread, NULL, run, &w[i]) == 0);
		wait_queued(i == 0 ? NULL : &tail);
	}
}

TEST(a_commit_is_of_so_many_sets_at_the_most)
{
	static struct writer first, w[CROWD];
	static char keys[CROWD][8];
	struct store_info info;
	begin();
	for (int i = 0; i < CROWD; i++) {
		(void)snprintf(keys[i], sizeof(keys[i]), "%d", i);
		w[i] = (struct writer){ .key = keys[i] };
	}
	queue_behind(&first, w, CROWD, write_one);
	(void)calls_stop();
	CHECK(pthread_join(first.thread, NULL) == 0);
	for (int i = 0; i < CROWD; i++) {
		CHECK(pthread_join(w[i].thread, NULL) == 0);
		CHECK_ERR(w[i].result, ERR_OK);
		CHECK(has_row(keys[i]));
	}
	store_info(store, &info);
	CHECK_EQ_INT(info.commit_sizes[STORE_COMMIT_SIZES - 1], 1);
	end();
}

/* More than a commit takes beside another set. */
static void *change_often(void *arg)
{
	static struct change c[4096];
	struct writer *w = arg;
	for (size_t i = 0; i < ARRAY_LEN(c); i++) {
		c[i] = (struct change){ .op = CHANGE_ATTRS,
			.at = row_at("p", "r"),
			.set_mask = ATTR_MODE,
			.attrs = ATTRS_UNSET };
		c[i].attrs.mode = MODE_SET(0600);
	}
	w->result = store_apply(store, c, ARRAY_LEN(c), false, NULL);
	changes_fini(c, ARRAY_LEN(c));
	return NULL;
}

static _Atomic bool lose_signals;

int __real_pthread_cond_signal(pthread_cond_t *c);
int __wrap_pthread_cond_signal(pthread_cond_t *c);
int __wrap_pthread_cond_signal(pthread_cond_t *c)
{
	return lose_signals ? 0 : __real_pthread_cond_signal(c);
}

/* Who comes before the one that was woken is up leads, though it is not of the first group. */
TEST(a_large_set_has_a_commit_of_its_own_and_any_thread_may_make_it)
{
	struct writer first, large = { .key = "large" };
	begin();
	CHECK_ERR(put_row("r"), ERR_OK);
	queue_behind(&first, &large, 1, change_often);
	lose_signals = true;
	(void)calls_stop();
	CHECK(pthread_join(first.thread, NULL) == 0);
	lose_signals = false;
	CHECK_ERR(put_row("own"), ERR_OK);
	CHECK(pthread_join(large.thread, NULL) == 0);
	CHECK_ERR(large.result, ERR_OK);
	CHECK(has_row("first") && has_row("own"));
	end();
}

static _Atomic bool forget_transaction;

int sqlite3_get_autocommit(sqlite3 *db)
{
	static int (*real)(sqlite3 *);
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "sqlite3_get_autocommit");
	int none = real(db);
	return !none && atomic_exchange(&forget_transaction, false) ? 1 : none;
}

/* As SQLite does after some errors. */
TEST(sets_whose_shared_transaction_is_gone_are_committed_each_alone)
{
	struct writer w[3];
	struct store_info before, now;
	begin();
	store_info(store, &before);
	gather(w);
	forget_transaction = true;
	(void)calls_stop();
	join(w);
	for (int i = 0; i < 3; i++)
		CHECK_ERR(w[i].result, ERR_OK);
	CHECK(has_row("second") && has_row("third"));
	store_info(store, &now);
	CHECK_EQ_INT(now.commits - before.commits, 3);
	end();
}

/* A moment before a reader took the last read that the writer's connection may serve, another
 * one did. */
static bool steal_reads, lock_is_taken;

int __real_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m)
{
	if (steal_reads)
		atomic_store(&sql_of(store)->warm_reads, 0);
	return lock_is_taken ? EBUSY : __real_pthread_mutex_trylock(m);
}

TEST(so_many_reads_after_a_commit_are_the_writers)
{
	begin();
	CHECK_ERR(put_row("a"), ERR_OK);
	steal_reads = true;
	CHECK(has_row("a"));
	steal_reads = false;
	CHECK_ERR(put_row("a"), ERR_OK);
	lock_is_taken = true;
	CHECK(has_row("a"));
	lock_is_taken = false;
	CHECK_ERR(put_row("b"), ERR_OK);
	CHECK(has_row("b"));
	CHECK_EQ_INT(atomic_load(&sql_of(store)->warm_reads), SQL_WARM_READS - 1);
	end();
}

/* clang-format off */
RUN_TESTS(
	T(a_read_does_not_wait_for_a_commit),
	T(without_memory_each_of_a_shared_commit_is_whole_or_refused),
	T(a_commit_is_of_so_many_sets_at_the_most),
	T(a_large_set_has_a_commit_of_its_own_and_any_thread_may_make_it),
	T(sets_whose_shared_transaction_is_gone_are_committed_each_alone),
	T(so_many_reads_after_a_commit_are_the_writers))
/* clang-format on */
