/* SPDX-License-Identifier: MIT */
#include "service/core/change_signal.h"

#include "base/clock.h"

#include <errno.h>
#include <time.h>

void change_signal_init(struct change_signal *s)
{
	mutex_init(&s->lock, RANK_CHANGE_SIGNAL);
	pthread_cond_init(&s->raised, NULL);
}

void change_signal_fini(struct change_signal *s)
{
	pthread_cond_destroy(&s->raised);
	mutex_destroy(&s->lock);
}

void change_signal_raise(struct change_signal *s)
{
	/* A waiter counts itself before it looks at the count. */
	atomic_fetch_add(&s->count, 1);
	if (atomic_load(&s->waiting) == 0)
		return;
	mutex_lock(&s->lock);
	pthread_cond_broadcast(&s->raised);
	mutex_unlock(&s->lock);
}

uint64_t change_signal_seen(struct change_signal *s)
{
	return atomic_load(&s->count);
}

void change_signal_wait(struct change_signal *s, uint64_t seen, uint64_t until_us)
{
	const struct timespec until = { .tv_sec = (time_t)(until_us / 1000000),
		.tv_nsec = (long)(until_us % 1000000) * 1000 };
	int code = 0;
	mutex_lock(&s->lock);
	atomic_fetch_add(&s->waiting, 1);
	while (atomic_load(&s->count) == seen && code != ETIMEDOUT)
		code = cond_wait_until(&s->raised, &s->lock, &until);
	atomic_fetch_sub(&s->waiting, 1);
	mutex_unlock(&s->lock);
}
