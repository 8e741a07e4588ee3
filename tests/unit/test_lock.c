/* SPDX-License-Identifier: MIT
 * The checks of base/lock.h.  This program compiles lock.c with them, whatever the build has. */
#include "base/lock.h"
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct mutex stage, contents = MUTEX_INIT(RANK_CONTENTS);
static struct rwlock front_ends;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;

/* Runs fn in a child process, in which fn must stop the program with these words. */
static bool stops(void (*fn)(void), const char *words)
{
	char text[2048];
	int fds[2], status;
	if (pipe(fds) != 0)
		return false;
	pid_t pid = fork();
	if (pid == 0) {
		const struct rlimit none = { 0, 0 };
		(void)setrlimit(RLIMIT_CORE, &none);
		(void)dup2(fds[1], STDERR_FILENO);
		fn();
		_exit(0);
	}
	(void)close(fds[1]);
	size_t n = 0;
	for (ssize_t more = 1; more > 0 && n < sizeof(text) - 1; n += (size_t)more) {
		more = read(fds[0], text + n, sizeof(text) - 1 - n);
		if (more < 0)
			more = 0;
	}
	text[n] = 0;
	(void)close(fds[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	bool stopped = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
	if (!stopped || strstr(text, words) == NULL)
		printf("# status %d: %s\n", status, text);
	return stopped && strstr(text, words) != NULL;
}

static void begin(void)
{
	CHECK_EQ_INT(mutex_init(&stage, RANK_STAGE), 0);
	CHECK_EQ_INT(rwlock_init(&front_ends, RANK_FRONT_ENDS), 0);
}

TEST(locks_are_taken_in_order_and_released_in_any)
{
	begin();
	for (int i = 0; i < 2; i++) {
		mutex_lock(&stage);
		rwlock_rdlock(&front_ends);
		lock_assert_above(RANK_STORE_CALL);
		CHECK_EQ_INT(mutex_trylock(&contents), 0);
		lock_assert_held(&stage);
		lock_assert_held(&front_ends);
		mutex_unlock(&stage);
		lock_assert_held(&contents);
		mutex_unlock(&contents);
		rwlock_unlock(&front_ends);
	}
	rwlock_wrlock(&front_ends);
	mutex_lock(&contents);
	struct timespec past = { 0 };
	CHECK_EQ_INT(cond_wait_until(&wake, &contents, &past), ETIMEDOUT);
	lock_assert_held(&contents);
	mutex_unlock(&contents);
	rwlock_unlock(&front_ends);
}

static void take_in_wrong_order(void)
{
	mutex_lock(&contents);
	mutex_lock(&stage);
}

static void try_in_wrong_order(void)
{
	mutex_lock(&contents);
	(void)mutex_trylock(&stage);
}

static void read_in_wrong_order(void)
{
	mutex_lock(&contents);
	rwlock_rdlock(&front_ends);
}

static void write_in_wrong_order(void)
{
	mutex_lock(&contents);
	rwlock_wrlock(&front_ends);
}

TEST(a_lock_taken_against_the_order_stops_the_program_and_both_are_named)
{
	begin();
	CHECK(stops(take_in_wrong_order, "lock STAGE (fs/write/stage.h: "));
	CHECK(stops(take_in_wrong_order, " is taken under CONTENTS (fs/cache/content.c: "));
	CHECK(stops(try_in_wrong_order, " is taken under CONTENTS "));
	CHECK(stops(read_in_wrong_order, "lock FRONT ENDS (service/core/service.c: "));
	CHECK(stops(write_in_wrong_order, " is taken under CONTENTS "));
}

static void take_two_of_a_rank(void)
{
	struct mutex other;
	(void)mutex_init(&other, RANK_STAGE);
	mutex_lock(&stage);
	mutex_lock(&other);
}

static void take_twice(void)
{
	mutex_lock(&stage);
	mutex_lock(&stage);
}

static void read_twice(void)
{
	rwlock_rdlock(&front_ends);
	rwlock_rdlock(&front_ends);
}

TEST(a_second_lock_of_a_rank_stops_the_program)
{
	begin();
	CHECK(stops(take_two_of_a_rank, " is taken under STAGE "));
	CHECK(stops(take_twice, " is taken under STAGE "));
	CHECK(stops(read_twice, " is taken under FRONT ENDS "));
}

static void call_the_store(void)
{
	mutex_lock(&contents);
	lock_assert_above(RANK_STORE_CALL);
}

TEST(a_call_of_the_store_under_a_tables_lock_stops_the_program)
{
	CHECK(stops(call_the_store, "lock STORE_CALL (store/store.h: "));
	CHECK(stops(call_the_store, " is taken under CONTENTS "));
}

static void need_none(void)
{
	lock_assert_held(&stage);
}

static void need_another(void)
{
	struct mutex other;
	(void)mutex_init(&other, RANK_STAGE);
	mutex_lock(&other);
	lock_assert_held(&stage);
}

static void release_none(void)
{
	mutex_unlock(&stage);
}

static void wait_without(void)
{
	cond_wait(&wake, &stage);
}

TEST(a_lock_that_is_missing_stops_the_program)
{
	begin();
	CHECK(stops(need_none, "lock STAGE (fs/write/stage.h: "));
	CHECK(stops(need_none, " is not held"));
	CHECK(stops(need_another, " is not held"));
	CHECK(stops(release_none, " is not held"));
	CHECK(stops(wait_without, " is not held"));
}

static void wait_under_another(void)
{
	struct timespec past = { 0 };
	mutex_lock(&stage);
	mutex_lock(&contents);
	(void)cond_wait_until(&wake, &stage, &past);
}

TEST(a_wait_that_keeps_an_inner_lock_stops_the_program)
{
	begin();
	CHECK(stops(wait_under_another, "lock STAGE "));
	CHECK(stops(wait_under_another, " is taken under CONTENTS "));
}

static void take_unranked(void)
{
	static struct mutex none;
	mutex_lock(&none);
}

TEST(a_lock_without_a_rank_stops_the_program)
{
	CHECK(stops(take_unranked, "was never initialized"));
}

RUN_TESTS(T(locks_are_taken_in_order_and_released_in_any),
	T(a_lock_taken_against_the_order_stops_the_program_and_both_are_named),
	T(a_second_lock_of_a_rank_stops_the_program),
	T(a_call_of_the_store_under_a_tables_lock_stops_the_program),
	T(a_lock_that_is_missing_stops_the_program),
	T(a_wait_that_keeps_an_inner_lock_stops_the_program),
	T(a_lock_without_a_rank_stops_the_program))
