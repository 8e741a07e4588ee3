/* SPDX-License-Identifier: MIT */
#include "fs/tree/told.h"

#include "base/clock.h"
#include "base/lock.h"
#include "fs/core/nid.h"
#include "fs/core/virtual.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Each holds a view of the store, of which there are 64. */
#define TOLD_MAX 8
#define TOLD_US (2000u * 1000)

struct kept {
	uint64_t nid, until_us;
	struct told_to to;
	struct vfile *file; /* NULL: the slot is free */
};

struct told {
	struct mutex lock;
	atomic_size_t n; /* changed under lock */
	size_t oldest;   /* guarded by lock, as all below */
	struct kept v[TOLD_MAX];
};

struct told *told_new(void)
{
	struct told *t = calloc(1, sizeof(*t));
	if (t != NULL && mutex_init(&t->lock, RANK_TOLD) != 0) {
		free(t);
		return NULL;
	}
	return t;
}

static void close_file(struct vfile *f)
{
	if (f != NULL)
		f->ops->free(f);
}

void told_free(struct told *t)
{
	if (t == NULL)
		return;
	(void)told_close(t, true);
	mutex_destroy(&t->lock);
	free(t);
}

static struct vfile *empty(struct told *t, struct kept *k)
{
	lock_assert_held(&t->lock);
	struct vfile *f = k->file;
	if (f != NULL)
		atomic_fetch_sub(&t->n, 1);
	k->file = NULL;
	return f;
}

static struct kept *find(struct told *t, uint64_t base, struct told_to to)
{
	lock_assert_held(&t->lock);
	for (size_t i = 0; i < TOLD_MAX; i++) {
		struct kept *k = &t->v[i];
		if (k->file != NULL && nid_base(k->nid) == base && k->to.tid == to.tid &&
			k->to.uid == to.uid && k->to.gid == to.gid && clock_mono_us() < k->until_us)
			return k;
	}
	return NULL;
}

void told_keep(struct told *t, uint64_t nid, struct told_to to, struct vfile *f, uint64_t until_us)
{
	if (to.tid == 0) { /* of another PID namespace, as all threads there */
		close_file(f);
		return;
	}
	mutex_lock(&t->lock);
	struct kept *k = find(t, nid_base(nid), to);
	if (k == NULL)
		k = &t->v[t->oldest++ % TOLD_MAX];
	struct vfile *before = empty(t, k);
	*k = (struct kept){ nid, until_us != 0 ? until_us : clock_mono_us() + TOLD_US, to, f };
	atomic_fetch_add(&t->n, 1);
	mutex_unlock(&t->lock);
	close_file(before);
}

uint64_t told_node(struct told *t, uint64_t base, struct told_to to)
{
	if (atomic_load(&t->n) == 0)
		return 0;
	mutex_lock(&t->lock);
	const struct kept *k = find(t, base, to);
	uint64_t nid = k != NULL ? k->nid : 0;
	mutex_unlock(&t->lock);
	return nid;
}

struct vfile *told_take(struct told *t, uint64_t nid, struct told_to to, uint64_t *ret_until_us)
{
	if (atomic_load(&t->n) == 0)
		return NULL;
	mutex_lock(&t->lock);
	struct kept *k = find(t, nid_base(nid), to);
	bool found = k != NULL && k->nid == nid;
	if (found)
		*ret_until_us = k->until_us;
	struct vfile *f = found ? empty(t, k) : NULL;
	mutex_unlock(&t->lock);
	return f;
}

/* until_us: those that last no longer; tid: that thread's. */
static bool close_some(struct told *t, uint64_t until_us, pid_t tid)
{
	struct vfile *gone[TOLD_MAX];
	size_t n = 0;
	mutex_lock(&t->lock);
	for (size_t i = 0; i < TOLD_MAX; i++) {
		struct kept *k = &t->v[i];
		if (k->file != NULL && (k->until_us <= until_us || k->to.tid == tid))
			gone[n++] = empty(t, k);
	}
	mutex_unlock(&t->lock);
	for (size_t i = 0; i < n; i++)
		close_file(gone[i]);
	return n > 0;
}

void told_forget(struct told *t, pid_t tid)
{
	if (atomic_load(&t->n) > 0)
		(void)close_some(t, 0, tid);
}

bool told_close(struct told *t, bool all)
{
	return atomic_load(&t->n) > 0 && close_some(t, all ? UINT64_MAX : clock_mono_us(), 0);
}
