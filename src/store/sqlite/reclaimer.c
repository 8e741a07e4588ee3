/* SPDX-License-Identifier: MIT
 * The thread that reclaims what removals left (reclaim.c), a slice a commit.  It starts when there is
 * something to do for the first time.  Between slices it rests as long as they take, so that other
 * writers have half of the time.  Under held views the log cannot begin anew, so it waits with the log
 * at its bound. */
#include "base/clock.h"
#include "base/lock.h"
#include "store/sqlite/store.h"

#include <signal.h>
#include <time.h>

#define REST_MAX_US 10000
#define LOG_WAIT_US 200000
#define ERROR_WAIT_US 1000000
#define ERROR_WAIT_MAX_US 64000000

/* Releases the lock meanwhile. */
static void rest(struct sql_store *st, uint64_t us)
{
	lock_assert_held(&st->lock);
	struct timespec until;
	uint64_t end = clock_mono_us() + us;
	until.tv_sec = (time_t)(end / 1000000);
	until.tv_nsec = (long)(end % 1000000) * 1000;
	while (!st->reclaimer.stop && clock_mono_us() < end)
		(void)cond_wait_until(&st->reclaimer.wake, &st->lock, &until);
}

/* Releases the lock meanwhile. */
static void copy_log(struct sql_store *st)
{
	lock_assert_held(&st->lock);
	struct sql_conn *c;
	if (!sql_log_is_long(st))
		return;
	mutex_unlock(&st->lock);
	if (sql_pool_borrow(&st->readers, &c) == ERR_OK) {
		enum err e = sql_end_reading(c);
		if (e == ERR_OK)
			sql_log_copy(st, c->db);
		sql_pool_return(&st->readers, c, e);
	}
	mutex_lock(&st->lock);
}

static void *run(void *arg)
{
	struct sql_store *st = arg;
	uint64_t wait = ERROR_WAIT_US;
	mutex_lock(&st->lock);
	while (!st->reclaimer.stop) {
		size_t done;
		if (!sql_has_to_reclaim(st)) {
			cond_wait(&st->reclaimer.wake, &st->lock);
			continue;
		}
		if (atomic_load(&st->held) > 0 && sql_log_bytes(st) >= SQL_LOG_BYTES) {
			rest(st, LOG_WAIT_US);
			continue;
		}
		uint64_t begun = clock_mono_us();
		if (st->reclaimer.slice(st, &done) == ERR_OK) {
			wait = ERROR_WAIT_US;
			copy_log(st);
			uint64_t took = clock_mono_us() - begun;
			rest(st, took < REST_MAX_US ? took : REST_MAX_US);
		} else {
			rest(st, wait);
			wait = wait < ERROR_WAIT_MAX_US ? 2 * wait : wait;
		}
	}
	mutex_unlock(&st->lock);
	return NULL;
}

/* Signals are for the threads that expect them. */
static bool start(struct sql_store *st)
{
	sigset_t all, before;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	bool started = pthread_create(&st->reclaimer.thread, NULL, run, st) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

void sql_reclaimer_wake(struct sql_store *st)
{
	lock_assert_held(&st->lock);
	if (st->read_only || st->reclaimer.stop || !sql_has_to_reclaim(st))
		return;
	if (st->reclaimer.started)
		pthread_cond_signal(&st->reclaimer.wake);
	else
		st->reclaimer.started = start(st); /* else the next commit tries again */
}

void sql_reclaimer_stop(struct sql_store *st)
{
	mutex_lock(&st->lock);
	st->reclaimer.stop = true;
	pthread_cond_signal(&st->reclaimer.wake);
	bool started = st->reclaimer.started;
	mutex_unlock(&st->lock);
	if (started)
		pthread_join(st->reclaimer.thread, NULL);
}
