/* SPDX-License-Identifier: MIT
 * A ring: setting more conditions than it holds without using them drops the oldest. */
#include "fs/match.h"

#include <pthread.h>
#include <stdlib.h>

#define KEPT 4096

struct matches {
	pthread_mutex_t lock;
	struct {
		uint64_t row_id; /* 0: free */
		int64_t version;
	} ring[KEPT]; /* guarded by lock */
	unsigned next, live;
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

void matches_set(struct matches *m, uint64_t row_id, int64_t version)
{
	pthread_mutex_lock(&m->lock);
	(void)find(m, row_id, true);
	unsigned at = m->next++ % KEPT;
	m->live += m->ring[at].row_id == 0;
	m->ring[at].row_id = row_id;
	m->ring[at].version = version;
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
	pthread_mutex_lock(&m->lock);
	if (row_id != 0)
		(void)find(m, row_id, true);
	pthread_mutex_unlock(&m->lock);
}
