/* SPDX-License-Identifier: MIT */
#include "fs/write/retries.h"

#include "base/clock.h"
#include "base/lock.h"

#include <stdlib.h>

/* As many threads may be between the two steps at once.  They are spread over sets by their
 * number, so that a look at one set is enough. */
#define RETRY_SETS 256
#define RETRY_SET 16
/* Longer than this process may stand still (stopped, swapped out) between the two steps. */
#define RETRY_LIFE_US UINT64_C(10000000)

struct retry {
	pid_t tid; /* 0: free */
	enum retry_what what;
	bool missed; /* the last look-up of the name found nothing */
	/* Lookups that were given the stage speculatively; 0: none, its open was refused. */
	unsigned lookups;
	uint64_t nid, born_us;
	uint64_t found;  /* the node that its look-up of the name gave it; 0: none yet */
	uint64_t dir_id; /* of the name that the thread looks up again; 0: it has looked none up */
	char name[COMPONENT_MAX];
	struct stage *stage;
};

struct retries {
	struct mutex lock;
	atomic_int live;
	size_t turn;                              /* the set to tidy next; guarded by lock */
	uint64_t tidied_us;                       /* guarded by lock */
	struct retry sets[RETRY_SETS][RETRY_SET]; /* guarded by lock */
};

struct retries *retries_new(void)
{
	struct retries *n = calloc(1, sizeof(*n));
	if (n != NULL && mutex_init(&n->lock, RANK_RETRIES) != 0) {
		free(n);
		return NULL;
	}
	return n;
}

static struct retry *set_of(struct retries *n, pid_t tid)
{
	return n->sets[(size_t)tid % RETRY_SETS];
}

static struct retry *find_retry(struct retries *n, pid_t tid)
{
	lock_assert_held(&n->lock);
	struct retry *set = set_of(n, tid);
	for (size_t i = 0; i < RETRY_SET; i++)
		if (set[i].tid == tid)
			return &set[i];
	return NULL;
}

/* Frees the slot and hands its stage to the caller. */
static struct stage *clear(struct retries *n, struct retry *retry)
{
	struct stage *s = retry->stage;
	if (retry->tid != 0)
		atomic_fetch_sub(&n->live, 1);
	*retry = (struct retry){ 0 };
	return s;
}

/* A free one, or the oldest. */
static struct retry *retry_for(struct retries *n, pid_t tid)
{
	lock_assert_held(&n->lock);
	struct retry *set = set_of(n, tid), *oldest = set;
	for (size_t i = 0; i < RETRY_SET; i++) {
		if (set[i].tid == 0)
			return &set[i];
		if (set[i].born_us < oldest->born_us)
			oldest = &set[i];
	}
	return oldest;
}

static void drop_stage(struct fs *fs, struct stage *s)
{
	if (s != NULL)
		stages_unref(fs, fs->stages, s);
}

static size_t expire_set(struct retries *n, struct retry *set, uint64_t now, struct stage **dropped)
{
	size_t count = 0;
	for (size_t i = 0; i < RETRY_SET; i++)
		if (set[i].tid != 0 && now - set[i].born_us >= RETRY_LIFE_US) {
			struct stage *s = clear(n, &set[i]);
			if (s != NULL)
				dropped[count++] = s;
		}
	return count;
}

/* Notes of threads that never came back: in the set of this thread, and now and then in the next
 * ones in turn.  Their stages go outside the lock. */
#define EXPIRE_SETS 8
#define EXPIRE_EVERY_US 20000
#define EXPIRE_MAX ((EXPIRE_SETS + 1) * RETRY_SET)
static size_t expire(struct retries *n, pid_t tid, struct stage *dropped[EXPIRE_MAX])
{
	lock_assert_held(&n->lock);
	uint64_t now = clock_mono_us();
	size_t count = expire_set(n, set_of(n, tid), now, dropped);
	if (now - n->tidied_us < EXPIRE_EVERY_US)
		return count;
	n->tidied_us = now;
	for (size_t i = 0; i < EXPIRE_SETS; i++)
		count += expire_set(n, n->sets[n->turn++ % RETRY_SETS], now, &dropped[count]);
	return count;
}

static bool is_for(const struct retry *retry, uint64_t dir_id, struct span name)
{
	return retry->dir_id != 0 && retry->dir_id == dir_id && span_is(name, retry->name);
}

/* The name by which the thread came is the one that its walk looks up: what it opened may have been
 * renamed since. */
static void learn_name(struct retry *retry, uint64_t dir_id, struct span name)
{
	if (retry->dir_id != 0 || name.n >= COMPONENT_MAX)
		return;
	retry->dir_id = dir_id;
	memcpy(retry->name, name.p, name.n);
	retry->name[name.n] = 0;
}

static void set_retry(struct retry *retry, pid_t tid, uint64_t nid, enum retry_what what)
{
	*retry = (struct retry){ .tid = tid, .what = what, .nid = nid };
	retry->born_us = clock_mono_us();
}

/* Tells whether the request that comes to the node ends the walk that the retry is about.  A walk
 * that was given a staged write ends at that one's own node.  A request for another node has begun
 * a new walk: the old one ended in an error that we were not told.  The same holds for a writer
 * where a reader was refused, and for any other request where only a look was. */
static enum retry_state ends_walk(
	const struct retry *retry, uint64_t nid, const struct item *item, enum retry_what what)
{
	char name[COMPONENT_MAX];
	if (retry == NULL || retry->missed || retry->lookups != 0 || retry->stage != NULL ||
		what > retry->what || (what == RETRY_STAT && retry->what != RETRY_STAT))
		return RETRY_NONE;
	if (retry->dir_id == 0)
		return retry->nid == nid ? RETRY_LINK : RETRY_NONE;
	/* The item may have been renamed to this name; then the comparison of names below decides. */
	if (retry->nid == nid || retry->found == nid)
		return RETRY_SECOND;
	size_t n = item != NULL ? item_component(item, name) : 0;
	return item != NULL && is_for(retry, item->parent, span_make(name, n)) ? RETRY_SECOND
									       : RETRY_NONE;
}

enum retry_state retries_refuse(struct fs *fs, struct retries *n, pid_t tid, uint64_t nid,
	const struct item *item, enum retry_what what)
{
	struct stage *dropped = NULL, *expired[EXPIRE_MAX];
	mutex_lock(&n->lock);
	size_t nexpired = expire(n, tid, expired);
	struct retry *retry = find_retry(n, tid);
	enum retry_state state = ends_walk(retry, nid, item, what);
	if (state == RETRY_NONE) {
		if (retry == NULL)
			retry = retry_for(n, tid);
		dropped = clear(n, retry);
		set_retry(retry, tid, nid, what);
		atomic_fetch_add(&n->live, 1);
	}
	mutex_unlock(&n->lock);
	drop_stage(fs, dropped);
	while (nexpired > 0)
		drop_stage(fs, expired[--nexpired]);
	return state;
}

/* A staged write that was given speculatively and not opened at once: tools look at a file before they
 * write it.  A thread that looks more often does something else. */
#define SPECULATIVE_LOOKUPS 4

bool retries_speculate(
	struct fs *fs, struct retries *n, pid_t tid, uint64_t dir_id, struct span name)
{
	struct stage *dropped = NULL, *expired[EXPIRE_MAX];
	mutex_lock(&n->lock);
	size_t nexpired = expire(n, tid, expired);
	struct retry *retry = find_retry(n, tid);
	bool made = retry == NULL;
	if (made || retry->lookups != 0) {
		retry = made ? retry_for(n, tid) : retry;
		dropped = clear(n, retry);
	}
	if (made) {
		set_retry(retry, tid, 0, RETRY_WRITE);
		learn_name(retry, dir_id, name);
		retry->lookups = 1;
		atomic_fetch_add(&n->live, 1);
	}
	mutex_unlock(&n->lock);
	drop_stage(fs, dropped);
	while (nexpired > 0)
		drop_stage(fs, expired[--nexpired]);
	return made;
}

bool retries_is_speculative(struct retries *n, pid_t tid, const struct stage *s)
{
	if (atomic_load(&n->live) == 0)
		return false;
	mutex_lock(&n->lock);
	const struct retry *retry = find_retry(n, tid);
	bool speculative = retry != NULL && retry->lookups != 0 && retry->stage == s;
	mutex_unlock(&n->lock);
	return speculative;
}

bool retries_wants_stage(struct fs *fs, struct retries *n, pid_t tid, uint64_t dir_id,
	struct span name, struct stage **ret_stage)
{
	if (atomic_load(&n->live) == 0)
		return false;
	struct stage *dropped = NULL, *expired[EXPIRE_MAX];
	mutex_lock(&n->lock);
	size_t nexpired = expire(n, tid, expired);
	struct retry *retry = find_retry(n, tid);
	if (retry != NULL && retry->missed && !is_for(retry, dir_id, name)) {
		dropped = clear(n, retry); /* its walk is over */
		retry = NULL;
	}
	if (retry != NULL) {
		learn_name(retry, dir_id, name);
		retry->missed = false; /* until retries_missed() says so */
	}
	bool wants = retry != NULL && retry->what == RETRY_WRITE && is_for(retry, dir_id, name);
	if (wants && retry->lookups != 0)
		wants = retry->lookups++ < SPECULATIVE_LOOKUPS;
	*ret_stage =
		wants && retry->stage != NULL ? stages_get(fs->stages, retry->stage->nid) : NULL;
	mutex_unlock(&n->lock);
	drop_stage(fs, dropped);
	while (nexpired > 0)
		drop_stage(fs, expired[--nexpired]);
	return wants;
}

void retries_missed(struct retries *n, pid_t tid, uint64_t dir_id, struct span name)
{
	if (atomic_load(&n->live) == 0)
		return;
	mutex_lock(&n->lock);
	struct retry *retry = find_retry(n, tid);
	if (retry != NULL && is_for(retry, dir_id, name))
		retry->missed = true;
	mutex_unlock(&n->lock);
}

void retries_found(struct retries *n, pid_t tid, uint64_t dir_id, struct span name, uint64_t nid)
{
	if (atomic_load(&n->live) == 0)
		return;
	mutex_lock(&n->lock);
	struct retry *retry = find_retry(n, tid);
	if (retry != NULL && retry->what != RETRY_WRITE && is_for(retry, dir_id, name))
		retry->found = nid;
	mutex_unlock(&n->lock);
}

void retries_set_stage(struct fs *fs, struct retries *n, pid_t tid, struct stage *s)
{
	struct stage *dropped = s;
	mutex_lock(&n->lock);
	struct retry *retry = find_retry(n, tid);
	if (retry != NULL) {
		dropped = retry->stage;
		retry->stage = s;
	}
	mutex_unlock(&n->lock);
	drop_stage(fs, dropped);
}

void retries_clear(struct fs *fs, struct retries *n, pid_t tid)
{
	if (atomic_load(&n->live) == 0)
		return;
	struct stage *dropped = NULL;
	mutex_lock(&n->lock);
	struct retry *retry = find_retry(n, tid);
	if (retry != NULL)
		dropped = clear(n, retry);
	mutex_unlock(&n->lock);
	drop_stage(fs, dropped);
}

bool retries_expects(struct retries *n, pid_t tid, const struct stage *s)
{
	if (atomic_load(&n->live) == 0)
		return false;
	mutex_lock(&n->lock);
	const struct retry *retry = find_retry(n, tid);
	bool expects = retry != NULL && !retry->missed && retry->stage == s;
	mutex_unlock(&n->lock);
	return expects;
}

void retries_free(struct fs *fs, struct retries *n)
{
	if (n == NULL)
		return;
	for (size_t i = 0; i < RETRY_SETS * RETRY_SET; i++)
		drop_stage(fs, clear(n, &n->sets[i / RETRY_SET][i % RETRY_SET]));
	mutex_destroy(&n->lock);
	free(n);
}
