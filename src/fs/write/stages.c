/* SPDX-License-Identifier: MIT */
#include "fs/write/stages.h"

#include "base/lock.h"
#include "fs/cache/notify.h"
#include "fs/core/nid.h"

#include <stdlib.h>

#define BUCKETS 1024

struct stages {
	struct mutex lock;
	struct stage *buckets[BUCKETS]; /* by name; guarded by lock */
	struct stage *nodes[BUCKETS];   /* by node; guarded by lock */
	atomic_size_t count;
	uint64_t next; /* guarded by lock */
	/* How often another node was given out for a name of the bucket, for any name. */
	_Atomic uint64_t given[BUCKETS], given_any;
};

struct stages *stages_new(void)
{
	struct stages *t = calloc(1, sizeof(*t));
	if (t != NULL && mutex_init(&t->lock, RANK_STAGES) != 0) {
		free(t);
		return NULL;
	}
	return t;
}

void stages_free(struct fs *fs, struct stages *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while (t->buckets[i] != NULL) {
			struct stage *s = t->buckets[i];
			t->buckets[i] = s->next;
			stage_free(fs, s);
		}
	mutex_destroy(&t->lock);
	free(t);
}

static size_t bucket_of(uint64_t dir_id, const char *name)
{
	uint64_t h = dir_id * UINT64_C(0x9E3779B97F4A7C15);
	for (; *name != 0; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
	return (size_t)(h >> 32) % BUCKETS;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9E3779B97F4A7C15);
	return h ^ h >> 32;
}

static struct stage **node_bucket(struct stages *t, uint64_t nid)
{
	return &t->nodes[mix(0, nid) % BUCKETS];
}

static struct stage *find_stage(struct stages *t, uint64_t nid)
{
	lock_assert_held(&t->lock);
	struct stage *s = *node_bucket(t, nid);
	while (s != NULL && s->nid != nid)
		s = s->next_node;
	return s;
}

#define SPECULATIONS_AT_ONCE 16
/* Staged writes of a row that one thread is given speculatively have the same node, one after the
 * other, as long as nobody was given another node under the name.  If the kernel still has that
 * node there, its look-up is right.  If another look-up came in between, the node must differ: the
 * kernel would keep what that one found, and nobody would tell it of the commit. */
static uint64_t new_node(struct stages *t, const struct stage *s, size_t bucket, pid_t tid)
{
	if (tid != 0 && s->is.name == NAME_ITEM) {
		uint64_t which = mix(mix(mix(0, (uint64_t)tid), atomic_load(&t->given[bucket])),
			atomic_load(&t->given_any));
		/* The one before may be open: then a node beside it, that tells the row too. */
		for (unsigned i = 0; i < SPECULATIONS_AT_ONCE; i++) {
			uint64_t nid = nid_make_staged(s->base.id, which + i);
			if (find_stage(t, nid) == NULL)
				return nid;
		}
	}
	return NID_STAGED | ++t->next;
}

void stages_add(struct stages *t, struct stage *s, pid_t tid)
{
	size_t bucket = bucket_of(s->dir_id, s->name);
	mutex_lock(&t->lock);
	/* Before the node is chosen: see stages_expose(). */
	atomic_fetch_add(&t->count, 1);
	s->nid = new_node(t, s, bucket, tid);
	s->refs = 1;
	s->next = t->buckets[bucket];
	t->buckets[bucket] = s;
	struct stage **nodes = node_bucket(t, s->nid);
	s->next_node = *nodes;
	*nodes = s;
	mutex_unlock(&t->lock);
}

void stages_held(struct stages *t)
{
	atomic_fetch_add(&t->given_any, 1);
}

struct stage *stages_get(struct stages *t, uint64_t nid)
{
	mutex_lock(&t->lock);
	struct stage *s = find_stage(t, nid);
	if (s != NULL)
		s->refs++;
	mutex_unlock(&t->lock);
	return s;
}

void stages_unref(struct fs *fs, struct stages *t, struct stage *s)
{
	mutex_lock(&t->lock);
	bool gone = --s->refs == 0;
	if (gone) {
		struct stage **at = &t->buckets[bucket_of(s->dir_id, s->name)];
		while (*at != s)
			at = &(*at)->next;
		*at = s->next;
		at = node_bucket(t, s->nid);
		while (*at != s)
			at = &(*at)->next_node;
		*at = s->next_node;
		atomic_fetch_sub(&t->count, 1);
	}
	mutex_unlock(&t->lock);
	if (gone)
		stage_free(fs, s);
}

size_t stages_count(struct stages *t)
{
	size_t count = 0;
	mutex_lock(&t->lock);
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct stage *s = t->buckets[i]; s != NULL; s = s->next)
			count += stage_is_open(s);
	mutex_unlock(&t->lock);
	return count;
}

#define AT_A_TIME 64 /* and of one bucket half as many at least */
void stages_attributes_set(struct fs *fs, struct stages *t, uint64_t id)
{
	struct stage *some[AT_A_TIME];
	for (size_t i = 0; i < BUCKETS && atomic_load(&t->count) > 0;) {
		size_t n = 0;
		mutex_lock(&t->lock);
		for (; i < BUCKETS && n < AT_A_TIME / 2; i++)
			for (struct stage *s = t->buckets[i]; s != NULL && n < AT_A_TIME;
				s = s->next) {
				s->refs++;
				some[n++] = s;
			}
		mutex_unlock(&t->lock);
		while (n > 0) {
			struct stage *s = some[--n];
			if (stage_item(s).id == id)
				notify_attributes(fs->notifier, s->nid);
			stages_unref(fs, t, s);
		}
	}
}

/* Marks the stages in one bucket; answers one whose name is only in memory, with a reference. */
static struct stage *expose_bucket(
	struct stages *t, size_t bucket, uint64_t dir_id, const char *name)
{
	lock_assert_held(&t->lock);
	struct stage *fresh = NULL;
	for (struct stage *s = t->buckets[bucket]; s != NULL; s = s->next) {
		if (s->dir_id != dir_id || (name != NULL && strcmp(s->name, name) != 0))
			continue;
		atomic_store(&s->exposed, true);
		if (fresh == NULL && atomic_load(&s->is.name) == NAME_NEW) {
			s->refs++;
			fresh = s;
		}
	}
	return fresh;
}

static struct stage *expose_some(struct stages *t, uint64_t dir_id, const char *name)
{
	struct stage *fresh = NULL;
	mutex_lock(&t->lock);
	if (name != NULL)
		fresh = expose_bucket(t, bucket_of(dir_id, name), dir_id, name);
	for (size_t i = 0; name == NULL && fresh == NULL && i < BUCKETS; i++)
		fresh = expose_bucket(t, i, dir_id, NULL);
	mutex_unlock(&t->lock);
	return fresh;
}

void stages_expose(struct fs *fs, struct stages *t, uint64_t dir_id, const char *name)
{
	struct stage *s;
	/* First: a stage that is added meanwhile is seen below, or gets another node than before. */
	atomic_fetch_add(name != NULL ? &t->given[bucket_of(dir_id, name)] : &t->given_any, 1);
	while (atomic_load(&t->count) > 0 && (s = expose_some(t, dir_id, name)) != NULL) {
		(void)stage_create_name(fs, s);
		stages_unref(fs, t, s);
	}
}
