/* SPDX-License-Identifier: MIT
 * One list with one lock; the thread checks the whole list in each round.  Descriptors are used
 * only under the lock, and a connection leaves the list before MHD closes it.  So the watchdog
 * never shuts down another connection with the same number. */
#include "rest/http/watchdog.h"

#include "base/clock.h"
#include "base/lock.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#define ROUNDS_TO_LEAVERS 10
/* The deadline of idle and slow connections in a crowd. */
#define CROWDED_MS 5000
/* Without a credential a connection has at least this long: some round trips. */
#define STRANGER_MS 500

struct watchdog {
	struct mutex lock; /* the list; its descriptors are open while it is held */
	pthread_cond_t wake;
	pthread_t thread;
	struct watchdog_entry *first, *last;
	size_t n, crowd;
	unsigned rounds;
	bool stopping;
	watchdog_round_fn after_round;
	void *arg;
};

void watchdog_phase(struct watchdog_entry *c, enum phase phase, uint32_t ms)
{
	uint64_t end = ms == UINT32_MAX ? UINT64_MAX : clock_mono_coarse_us() + (uint64_t)ms * 1000;
	atomic_store_explicit(&c->deadline, end, memory_order_relaxed);
	atomic_store_explicit(&c->phase, phase, memory_order_release);
}

static bool is_overdue(const struct watchdog *w, struct watchdog_entry *c, uint64_t now)
{
	uint64_t end = atomic_load_explicit(&c->deadline, memory_order_relaxed);
	uint32_t phase = atomic_load_explicit(&c->phase, memory_order_acquire);
	if (phase == PHASE_WORK)
		return false;
	if (now >= end)
		return true;
	/* The short time starts when a round first sees the crowd. */
	if (phase != PHASE_REPLY && w->n >= w->crowd && end - now > CROWDED_MS * 1000)
		atomic_compare_exchange_strong(&c->deadline, &end, now + CROWDED_MS * 1000);
	return false;
}

/* MHD misses an end of input that arrives with the last bytes of an incomplete request.  This wakes
 * it.  A client can still receive a response. */
static void let_go(struct watchdog_entry *c)
{
	uint32_t phase = atomic_load_explicit(&c->phase, memory_order_acquire);
	struct pollfd at = { .fd = c->fd, .events = POLLRDHUP };
	if (phase != PHASE_WORK && phase != PHASE_REPLY && poll(&at, 1, 0) > 0)
		(void)shutdown(c->fd, SHUT_RD);
}

/* Closes connections without a credential, the oldest first.  So a new connection does not wait for
 * the deadlines of thousands. */
static void make_room(struct watchdog *w, uint64_t now)
{
	size_t left = w->n;
	for (struct watchdog_entry *c = w->last; c != NULL && left >= w->crowd; c = c->prev) {
		uint32_t phase = atomic_load_explicit(&c->phase, memory_order_acquire);
		bool may_stay = atomic_load_explicit(&c->known, memory_order_relaxed) ||
			phase == PHASE_WORK || phase == PHASE_REPLY ||
			now - c->since < STRANGER_MS * 1000;
		if (may_stay && !c->hung_up)
			continue;
		if (!c->hung_up)
			(void)shutdown(c->fd, SHUT_RDWR);
		c->hung_up = true;
		left--;
	}
}

static void round_of(struct watchdog *w)
{
	lock_assert_held(&w->lock);
	uint64_t now = clock_mono_us();
	bool leavers = ++w->rounds % ROUNDS_TO_LEAVERS == 0;
	for (struct watchdog_entry *c = w->first; c != NULL; c = c->next) {
		if (is_overdue(w, c, now))
			(void)shutdown(c->fd, SHUT_RDWR);
		else if (leavers)
			let_go(c);
	}
	make_room(w, now);
}

static void *run(void *arg)
{
	struct watchdog *w = arg;
	mutex_lock(&w->lock);
	while (!w->stopping) {
		struct timespec until;
		(void)clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += WATCHDOG_ROUND_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		(void)cond_wait_until(&w->wake, &w->lock, &until);
		round_of(w);
		size_t n = w->n;
		mutex_unlock(&w->lock);
		w->after_round(w->arg, n);
		mutex_lock(&w->lock);
	}
	mutex_unlock(&w->lock);
	return NULL;
}

enum err watchdog_start(
	size_t crowd, watchdog_round_fn after_round, void *arg, struct watchdog **ret)
{
	struct watchdog *w = calloc(1, sizeof(*w));
	if (w == NULL)
		return ERR_NO_MEMORY;
	w->crowd = crowd;
	w->after_round = after_round;
	w->arg = arg;
	mutex_init(&w->lock, RANK_WATCHDOG);
	pthread_cond_init(&w->wake, NULL);
	if (pthread_create(&w->thread, NULL, run, w) != 0) {
		pthread_cond_destroy(&w->wake);
		mutex_destroy(&w->lock);
		free(w);
		return ERR_NO_MEMORY;
	}
	*ret = w;
	return ERR_OK;
}

void watchdog_stop(struct watchdog *w)
{
	if (w == NULL)
		return;
	mutex_lock(&w->lock);
	w->stopping = true;
	mutex_unlock(&w->lock);
	pthread_cond_signal(&w->wake);
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->wake);
	mutex_destroy(&w->lock);
	free(w);
}

void watchdog_add(struct watchdog *w, struct watchdog_entry *c, uint32_t phase_ms)
{
	watchdog_phase(c, PHASE_IDLE, phase_ms);
	c->since = clock_mono_us();
	mutex_lock(&w->lock);
	c->prev = NULL;
	c->next = w->first;
	if (c->next != NULL)
		c->next->prev = c;
	else
		w->last = c;
	w->first = c;
	w->n++;
	mutex_unlock(&w->lock);
}

void watchdog_remove(struct watchdog *w, struct watchdog_entry *c)
{
	mutex_lock(&w->lock);
	if (c->prev != NULL)
		c->prev->next = c->next;
	else
		w->first = c->next;
	if (c->next != NULL)
		c->next->prev = c->prev;
	else
		w->last = c->prev;
	w->n--;
	mutex_unlock(&w->lock);
}

struct watchdog_entry *watchdog_find(struct watchdog *w, int fd)
{
	mutex_lock(&w->lock);
	struct watchdog_entry *c = w->first;
	while (c != NULL && c->fd != fd)
		c = c->next;
	mutex_unlock(&w->lock);
	return c;
}

void watchdog_dismiss_idle(struct watchdog *w)
{
	mutex_lock(&w->lock);
	for (struct watchdog_entry *c = w->first; c != NULL; c = c->next)
		if (!c->stays &&
			atomic_load_explicit(&c->phase, memory_order_acquire) == PHASE_IDLE)
			(void)shutdown(c->fd, SHUT_RD);
	mutex_unlock(&w->lock);
}

void watchdog_hang_up(struct watchdog *w)
{
	mutex_lock(&w->lock);
	for (struct watchdog_entry *c = w->first; c != NULL; c = c->next)
		if (atomic_load_explicit(&c->phase, memory_order_acquire) != PHASE_WORK)
			(void)shutdown(c->fd, SHUT_RDWR);
	mutex_unlock(&w->lock);
}

void watchdog_count(struct watchdog *w, size_t ret[PHASES])
{
	for (size_t i = 0; i < PHASES; i++)
		ret[i] = 0;
	mutex_lock(&w->lock);
	for (struct watchdog_entry *c = w->first; c != NULL; c = c->next)
		ret[atomic_load_explicit(&c->phase, memory_order_acquire)]++;
	mutex_unlock(&w->lock);
}
