/* SPDX-License-Identifier: MIT
 * base/wake.h. */
#include "base/wake.h"
#include "check.h"

#include <pthread.h>
#include <stdlib.h>

#define ROUNDS 20000

struct pair {
	struct wake ping, pong;
	unsigned seen;
};

TEST(a_word_that_was_told_before_is_not_waited_for)
{
	struct wake w = { 0 };

	wake_tell(&w, 3);
	CHECK_EQ_INT(wake_wait(&w), 3);
	CHECK_EQ_INT(atomic_load(&w.word), 0);
}

TEST(a_later_word_replaces_one_that_was_not_seen)
{
	struct wake w = { 0 };

	wake_tell(&w, 1);
	wake_tell(&w, 2);
	CHECK_EQ_INT(wake_wait(&w), 2);
}

static void *answer(void *arg)
{
	struct pair *p = arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		p->seen += wake_wait(&p->ping);
		wake_tell(&p->pong, p->seen);
	}
	return NULL;
}

TEST(no_word_is_lost_between_two_threads)
{
	struct pair p = { 0 };
	pthread_t thread;

	CHECK_EQ_INT(pthread_create(&thread, NULL, answer, &p), 0);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		wake_tell(&p.ping, 1);
		CHECK_EQ_INT(wake_wait(&p.pong), i);
	}
	CHECK_EQ_INT(pthread_join(thread, NULL), 0);
}

static void *tell_once(void *arg)
{
	wake_tell(arg, 1);
	return NULL;
}

/* Under AddressSanitizer a touch of the freed memory would end the test. */
TEST(the_sleeper_may_free_its_memory_at_once)
{
	for (int i = 0; i < 300; i++) {
		struct wake *w = calloc(1, sizeof(*w));
		pthread_t thread;

		CHECK(w != NULL);
		CHECK_EQ_INT(pthread_create(&thread, NULL, tell_once, w), 0);
		CHECK_EQ_INT(wake_wait(w), 1);
		free(w);
		CHECK_EQ_INT(pthread_join(thread, NULL), 0);
	}
}

RUN_TESTS(T(a_word_that_was_told_before_is_not_waited_for),
	T(a_later_word_replaces_one_that_was_not_seen), T(no_word_is_lost_between_two_threads),
	T(the_sleeper_may_free_its_memory_at_once))
