/* SPDX-License-Identifier: MIT
 * A table of fixed size: a condition that was accepted is never dropped to make room. */
#include "fs/match.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define KEPT 4096
#define REFUSALS 64 /* for one look at all rows: each is a look-up in the store */

struct matches {
	pthread_mutex_t lock;
	struct {
		uint64_t row_id; /* 0: free */
		int64_t version;
	} ring[KEPT]; /* guarded by lock */
	atomic_uint live;
	unsigned refused; /* guarded by lock */
};

struct matches *matches_new(void)
{
	struct matches *m = calloc(1, sizeof(*m));
	if (m != NULL && pthread_mutex_init(&m->lock, NULL) != 0) {
		free(m);
		return NULL;
	}
	return m;
}

void matches_free(struct matches *m)
{
	if (m == NULL)
		return;
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static int64_t find(struct matches *m, uint64_t row_id, bool remove)
{
	for (unsigned i = 0; m->live > 0 && i < KEPT; i++)
		if (m->ring[i].row_id == row_id) {
			if (remove) {
				m->ring[i].row_id = 0;
				m->live--;
			}
			return m->ring[i].version;
		}
	return -1;
}

static bool put(struct matches *m, uint64_t row_id, int64_t version)
{
	pthread_mutex_lock(&m->lock);
	(void)find(m, row_id, true);
	bool room = m->live < KEPT;
	for (unsigned i = 0; room && i < KEPT; i++)
		if (m->ring[i].row_id == 0) {
			m->ring[i].row_id = row_id;
			m->ring[i].version = version;
			m->live++;
			break;
		}
	pthread_mutex_unlock(&m->lock);
	return room;
}

static void sweep(struct matches *m, bool (*gone)(void *arg, uint64_t row_id), void *arg)
{
	for (unsigned i = 0; i < KEPT; i++) {
		pthread_mutex_lock(&m->lock);
		uint64_t row_id = m->ring[i].row_id;
		pthread_mutex_unlock(&m->lock);
		if (row_id != 0 && gone(arg, row_id))
			matches_drop(m, row_id);
	}
}

bool matches_set(struct matches *m, uint64_t row_id, int64_t version,
	bool (*gone)(void *arg, uint64_t row_id), void *arg)
{
	if (put(m, row_id, version))
		return true;
	pthread_mutex_lock(&m->lock);
	bool due = m->refused++ % REFUSALS == 0;
	pthread_mutex_unlock(&m->lock);
	if (!due)
		return false;
	sweep(m, gone, arg);
	return put(m, row_id, version);
}

void matches_many_gone(struct matches *m)
{
	pthread_mutex_lock(&m->lock);
	m->refused = 0;
	pthread_mutex_unlock(&m->lock);
}

int64_t matches_get(struct matches *m, uint64_t row_id)
{
	pthread_mutex_lock(&m->lock);
	int64_t version = row_id == 0 ? -1 : find(m, row_id, false);
	pthread_mutex_unlock(&m->lock);
	return version;
}

void matches_drop(struct matches *m, uint64_t row_id)
{
	if (row_id == 0 || atomic_load(&m->live) == 0)
		return;
	pthread_mutex_lock(&m->lock);
	(void)find(m, row_id, true);
	pthread_mutex_unlock(&m->lock);
}
