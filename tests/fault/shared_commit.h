/* SPDX-License-Identifier: MIT
 * Writers whose change sets meet in one commit. */
#ifndef FAULT_SHARED_COMMIT_H
#define FAULT_SHARED_COMMIT_H

#include "base/lock.h"
#include "one_store.h"
#include "store/sqlite/store.h"

#include <pthread.h>

struct writer {
	pthread_t thread;
	const char *key;
	size_t bytes; /* of its row; 0: a small one */
	enum err result;
};

static inline void *write_one(void *arg)
{
	struct writer *w = arg;
	static char zeros[1 << 20];
	w->result = w->bytes == 0
		? put_row(w->key)
		: apply(put(ITEM_ROW, row_at("p", w->key), span_make(zeros, w->bytes)));
	return NULL;
}

/* Where the next one goes. */
static inline struct sql_set **queue_tail(void)
{
	struct sql_store *st = sql_of(store);
	(void)mutex_lock(&st->lock);
	struct sql_set **tail = st->tail;
	(void)mutex_unlock(&st->lock);
	return tail;
}

static inline void wait_queued(struct sql_set **const *tail_was)
{
	struct sql_store *st = sql_of(store);
	for (bool queued = false; !queued;) {
		(void)usleep(500);
		(void)mutex_lock(&st->lock);
		queued = st->head != NULL && (tail_was == NULL || st->tail != *tail_was);
		(void)mutex_unlock(&st->lock);
	}
}

/* One commit waits in its write; those of two others wait for it, and will share the next one.  third: as writer.bytes. */
static inline void gather_with(struct writer w[3], size_t third)
{
	static const char *const keys[] = { "first", "second", "third" };
	for (int i = 0; i < 3; i++)
		w[i] = (struct writer){ .key = keys[i], .bytes = i == 2 ? third : 0 };
	calls_strike(CALLS_STALL, CALLS_WRITE, false, 1, 0);
	CHECK(pthread_create(&w[0].thread, NULL, write_one, &w[0]) == 0);
	while (calls_now()->struck == 0)
		(void)usleep(500);
	CHECK(pthread_create(&w[1].thread, NULL, write_one, &w[1]) == 0);
	wait_queued(NULL);
	struct sql_set **tail = queue_tail();
	CHECK(pthread_create(&w[2].thread, NULL, write_one, &w[2]) == 0);
	wait_queued(&tail);
}

static inline void gather(struct writer w[3])
{
	gather_with(w, 0);
}

static inline void join(struct writer w[3])
{
	for (int i = 0; i < 3; i++)
		CHECK(pthread_join(w[i].thread, NULL) == 0);
	(void)calls_stop();
}

#endif
