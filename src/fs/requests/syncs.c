/* SPDX-License-Identifier: MIT */
#include "fs/requests/syncs.h"

#include "base/lock.h"

#include <stdlib.h>

struct waiting {
	struct waiting *next;
	struct fuse_call call;
};

struct syncs {
	struct mutex lock;
	struct waiting *first; /* guarded by lock; in no order */
	bool running;          /* guarded by lock: somebody looks after them */
};

struct syncs *syncs_new(void)
{
	struct syncs *s = calloc(1, sizeof(*s));
	if (s != NULL && mutex_init(&s->lock, RANK_SYNCS) != 0) {
		free(s);
		return NULL;
	}
	return s;
}

void syncs_free(struct syncs *s)
{
	if (s == NULL)
		return;
	mutex_destroy(&s->lock);
	free(s);
}

/* What was written is committed: ENOSPC would say that it is not. */
static void answer(struct fuse_call *c, enum err synced)
{
	enum err e = synced == ERR_NO_SPACE ? ERR_OUTCOME_UNKNOWN : synced;
	if (e != ERR_OK)
		(void)err_set(&c->detail, e, "committed, but the disk refused to sync: %s",
			err_text(synced));
	reply_err(c, e);
}

static void answer_all(struct waiting *w, enum err e)
{
	while (w != NULL) {
		struct waiting *next = w->next;
		answer(&w->call, e);
		free(w);
		w = next;
	}
}

/* Releases the lock meanwhile. */
static void run(struct syncs *s, struct store *store)
{
	lock_assert_held(&s->lock);
	s->running = true;
	while (s->first != NULL) {
		struct waiting *all = s->first;
		s->first = NULL;
		mutex_unlock(&s->lock);
		answer_all(all, store_sync(store));
		mutex_lock(&s->lock);
	}
	s->running = false;
}

void syncs_reply(struct fuse_call *c)
{
	struct syncs *s = c->fs->syncs;
	struct store *store = c->fs->store;
	struct waiting *w = malloc(sizeof(*w));
	if (w == NULL) {
		answer(c, store_sync(store));
		return;
	}
	mutex_lock(&s->lock);
	*w = (struct waiting){ .next = s->first, .call = *c };
	s->first = w;
	if (!s->running)
		run(s, store);
	mutex_unlock(&s->lock);
}
