/* SPDX-License-Identifier: MIT */
#include "fs/core/waiters.h"

#include "base/clock.h"
#include "base/lock.h"

#include <stdlib.h>

struct waiters {
	struct mutex lock;
	pthread_cond_t changed;
	pthread_t timer;
	struct waiter *first;
	uint64_t seen;
	bool ended, stop;
};

static void detach(struct waiters *t, struct waiter *w)
{
	*(w->previous != NULL ? &w->previous->next : &t->first) = w->next;
	if (w->next != NULL)
		w->next->previous = w->previous;
	w->queued = false;
}

/* Detaches those that are due, or have this key, as a list.  key 0: no key. */
static struct waiter *detach_ready(struct waiters *t, uint64_t key, uint64_t now_us)
{
	struct waiter *ready = NULL;
	lock_assert_held(&t->lock);
	for (struct waiter *w = t->first, *next; w != NULL; w = next) {
		next = w->next;
		if (!t->ended && w->until_us > now_us && (key == 0 || w->key != key))
			continue;
		detach(t, w);
		w->next = ready;
		ready = w;
	}
	return ready;
}

static void call_ready(struct waiter *ready)
{
	for (struct waiter *w = ready, *next; w != NULL; w = next) {
		next = w->next;
		w->ready(w);
	}
}

static void wait_for_next(struct waiters *t)
{
	uint64_t until = UINT64_MAX;
	for (const struct waiter *w = t->first; w != NULL; w = w->next)
		until = w->until_us < until ? w->until_us : until;
	const struct timespec at = { .tv_sec = (time_t)(until / 1000000),
		.tv_nsec = (long)(until % 1000000) * 1000 };
	if (until == UINT64_MAX)
		cond_wait(&t->changed, &t->lock);
	else
		(void)cond_wait_until(&t->changed, &t->lock, &at);
}

static void *run_timer(void *arg)
{
	struct waiters *t = arg;
	mutex_lock(&t->lock);
	while (!t->stop) {
		struct waiter *ready = detach_ready(t, 0, clock_mono_us());
		if (ready == NULL) {
			wait_for_next(t);
			continue;
		}
		mutex_unlock(&t->lock);
		call_ready(ready);
		mutex_lock(&t->lock);
	}
	mutex_unlock(&t->lock);
	return NULL;
}

struct waiters *waiters_new(void)
{
	struct waiters *t = calloc(1, sizeof(*t));
	if (t == NULL)
		return NULL;
	if (mutex_init(&t->lock, RANK_WAITERS) != 0 || pthread_cond_init(&t->changed, NULL) != 0 ||
		pthread_create(&t->timer, NULL, run_timer, t) != 0) {
		free(t);
		return NULL;
	}
	return t;
}

void waiters_free(struct waiters *t)
{
	if (t == NULL)
		return;
	mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->changed);
	mutex_unlock(&t->lock);
	pthread_join(t->timer, NULL);
	pthread_cond_destroy(&t->changed);
	mutex_destroy(&t->lock);
	free(t);
}

uint64_t waiters_seen(struct waiters *t)
{
	mutex_lock(&t->lock);
	uint64_t seen = t->seen;
	mutex_unlock(&t->lock);
	return seen;
}

bool waiters_add(struct waiters *t, struct waiter *w, uint64_t seen)
{
	mutex_lock(&t->lock);
	bool waits = t->seen == seen && !t->ended && !w->cancelled;
	if (waits) {
		w->queued = true;
		w->previous = NULL;
		w->next = t->first;
		if (w->next != NULL)
			w->next->previous = w;
		t->first = w;
		pthread_cond_signal(&t->changed);
	}
	mutex_unlock(&t->lock);
	return waits;
}

void waiters_wake(struct waiters *t, uint64_t key)
{
	mutex_lock(&t->lock);
	t->seen++;
	struct waiter *ready = detach_ready(t, key, 0);
	mutex_unlock(&t->lock);
	call_ready(ready);
}

bool waiters_cancel(struct waiters *t, struct waiter *w)
{
	mutex_lock(&t->lock);
	bool queued = w->queued;
	w->cancelled = true;
	if (queued)
		detach(t, w);
	mutex_unlock(&t->lock);
	return queued;
}

void waiters_end(struct waiters *t)
{
	mutex_lock(&t->lock);
	t->ended = true;
	t->seen++;
	struct waiter *ready = detach_ready(t, 0, 0);
	mutex_unlock(&t->lock);
	call_ready(ready);
}
