/* SPDX-License-Identifier: MIT
 * The thread that reclaims what removals left (reclaim.c), a slice a commit, and then shrinks the file
 * (shrink.h).  It starts when there is something to do for the first time.  Between slices it rests as long
 * as they take, so that other writers have half of the time, and longer between steps that shrink.  Under
 * held views the log cannot begin anew, so it waits with the log at its bound. */
#include "base/clock.h"
#include "base/lock.h"
#include "store/sqlite/shrink.h"
#include "store/sqlite/store.h"

#include <signal.h>
#include <time.h>

#define REST_MAX_US 10000
#define LOG_WAIT_US 200000
#define SHRINK_REST_US 10000
#define ERROR_WAIT_US 1000000
#define ERROR_WAIT_MAX_US 64000000

/* Or until somebody wakes the thread.  Releases the lock meanwhile. */
static void wait_until(struct sql_store *st, uint64_t us)
{
	lock_assert_held(&st->lock);
	const struct timespec until = {
		.tv_sec = (time_t)(us / 1000000),
		.tv_nsec = (long)(us % 1000000) * 1000,
	};
	(void)cond_wait_until(&st->reclaimer.wake, &st->lock, &until);
}

/* Releases the lock meanwhile. */
static void rest(struct sql_store *st, uint64_t us)
{
	uint64_t end = clock_mono_us() + us;
	while (!st->reclaimer.stop && clock_mono_us() < end)
		wait_until(st, end);
}

/* Releases the lock meanwhile. */
static void copy_log(struct sql_store *st)
{
	lock_assert_held(&st->lock);
	struct sql_conn *c;
	mutex_unlock(&st->lock);
	if (sql_pool_borrow(&st->readers, &c) == ERR_OK) {
		enum err e = sql_end_reading(c);
		if (e == ERR_OK)
			sql_log_copy(st, c->db);
		sql_pool_return(&st->readers, c, e);
	}
	mutex_lock(&st->lock);
}

/* Returns for how long the thread rests. */
static uint64_t failed(struct sql_store *st)
{
	uint64_t us = st->reclaimer.error_us;
	st->reclaimer.error_us = us < ERROR_WAIT_MAX_US ? 2 * us : us;
	return us;
}

/* Releases the lock meanwhile. */
static void reclaim(struct sql_store *st)
{
	size_t done;
	if (atomic_load(&st->held) > 0 && sql_log_bytes(st) >= SQL_LOG_BYTES) {
		rest(st, LOG_WAIT_US);
		return;
	}
	uint64_t begun = clock_mono_us();
	if (st->reclaimer.slice(st, &done) != ERR_OK) {
		rest(st, failed(st));
		return;
	}
	st->reclaimer.error_us = ERROR_WAIT_US;
	if (sql_log_is_long(st))
		copy_log(st);
	uint64_t took = clock_mono_us() - begun;
	rest(st, took < REST_MAX_US ? took : REST_MAX_US);
}

/* Returns for how long no step is due.  Releases the lock meanwhile.  While a view is held, the file
 * could not become shorter, and each step would make the log longer. */
static uint64_t shrink(struct sql_store *st)
{
	if (st->reclaimer.shrink_at == 0)
		return st->reclaimer.shrink_after_us;
	if (atomic_load(&st->held) > 0)
		return LOG_WAIT_US;
	if (st->reclaimer.step(st) != ERR_OK)
		return failed(st);
	bool moves = atomic_load(&st->shrink) == SHRINK_MOVE;
	if (!moves || sql_log_is_long(st))
		copy_log(st);
	if (!moves) /* A reader may keep the log from being copied whole. */
		return failed(st);
	st->reclaimer.error_us = ERROR_WAIT_US;
	return SHRINK_REST_US;
}

/* Returns once there may be something to do.  Releases the lock meanwhile. */
static void idle(struct sql_store *st)
{
	if (atomic_load(&st->shrink) == SHRINK_DONE) {
		st->reclaimer.shrink_at = 0;
		st->reclaimer.idle = true;
		cond_wait(&st->reclaimer.wake, &st->lock);
		st->reclaimer.idle = false;
	} else if (clock_mono_us() >= st->reclaimer.shrink_at) {
		uint64_t us = shrink(st);
		st->reclaimer.shrink_at = clock_mono_us() + us;
	} else {
		wait_until(st, st->reclaimer.shrink_at);
	}
}

static void *run(void *arg)
{
	struct sql_store *st = arg;
	mutex_lock(&st->lock);
	st->reclaimer.error_us = ERROR_WAIT_US;
	while (!st->reclaimer.stop) {
		if (sql_has_to_reclaim(st))
			reclaim(st);
		else
			idle(st);
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
	bool shrinks = atomic_load(&st->shrink) != SHRINK_DONE;
	if (st->read_only || st->reclaimer.stop || !(sql_has_to_reclaim(st) || shrinks))
		return;
	if (st->reclaimer.started && (st->reclaimer.idle || sql_has_to_reclaim(st)))
		pthread_cond_signal(&st->reclaimer.wake);
	else if (!st->reclaimer.started)
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
