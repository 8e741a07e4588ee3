/* SPDX-License-Identifier: MIT */
#include "fs/stages.h"

#include "base/clock.h"
#include "fs/nid.h"

#include <stdlib.h>

#define BUCKETS 1024
#define NOTES 256
#define NOTE_LIFE_US UINT64_C(1000000)

struct stages {
	pthread_mutex_t lock;
	struct stage *buckets[BUCKETS]; /* guarded by lock */
	atomic_size_t count;
	uint64_t next; /* guarded by lock */
};

struct stages *stages_new(void)
{
	struct stages *t = calloc(1, sizeof(*t));
	if (t != NULL && pthread_mutex_init(&t->lock, NULL) != 0) {
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
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* A stage is found by its name, and by its node, which holds its bucket's number. */
static size_t bucket_of(uint64_t dir_id, const char *name)
{
	uint64_t h = dir_id * UINT64_C(0x9E3779B97F4A7C15);
	for (; *name != 0; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
	return (size_t)(h >> 32) % BUCKETS;
}

void stages_add(struct stages *t, struct stage *s)
{
	size_t bucket = bucket_of(s->dir_id, s->name);
	pthread_mutex_lock(&t->lock);
	s->nid = NID_PRIVATE | ++t->next * BUCKETS | bucket;
	s->refs = 1;
	s->next = t->buckets[bucket];
	t->buckets[bucket] = s;
	atomic_fetch_add(&t->count, 1);
	pthread_mutex_unlock(&t->lock);
}

struct stage *stages_get(struct stages *t, uint64_t nid)
{
	pthread_mutex_lock(&t->lock);
	struct stage *s = t->buckets[nid % BUCKETS];
	while (s != NULL && s->nid != nid)
		s = s->next;
	if (s != NULL)
		s->refs++;
	pthread_mutex_unlock(&t->lock);
	return s;
}

void stages_unref(struct fs *fs, struct stages *t, struct stage *s)
{
	pthread_mutex_lock(&t->lock);
	bool gone = --s->refs == 0;
	if (gone) {
		struct stage **at = &t->buckets[s->nid % BUCKETS];
		while (*at != s)
			at = &(*at)->next;
		*at = s->next;
		atomic_fetch_sub(&t->count, 1);
	}
	pthread_mutex_unlock(&t->lock);
	if (gone)
		stage_free(fs, s);
}

size_t stages_count(struct stages *t)
{
	return atomic_load(&t->count);
}

/* Marks the stages in one bucket; answers one that is still a draft in memory, with a
 * reference. */
static struct stage *expose_bucket(
	struct stages *t, size_t bucket, uint64_t dir_id, const char *name)
{
	struct stage *draft = NULL;
	for (struct stage *s = t->buckets[bucket]; s != NULL; s = s->next) {
		if (s->dir_id != dir_id || (name != NULL && strcmp(s->name, name) != 0))
			continue;
		atomic_store(&s->exposed, true);
		if (draft == NULL && !atomic_load(&s->settled)) {
			s->refs++;
			draft = s;
		}
	}
	return draft;
}

static struct stage *expose_some(struct stages *t, uint64_t dir_id, const char *name)
{
	struct stage *draft = NULL;
	pthread_mutex_lock(&t->lock);
	if (name != NULL)
		draft = expose_bucket(t, bucket_of(dir_id, name), dir_id, name);
	for (size_t i = 0; name == NULL && draft == NULL && i < BUCKETS; i++)
		draft = expose_bucket(t, i, dir_id, NULL);
	pthread_mutex_unlock(&t->lock);
	return draft;
}

void stages_expose(struct fs *fs, struct stages *t, uint64_t dir_id, const char *name)
{
	struct stage *s;
	while (atomic_load(&t->count) > 0 && (s = expose_some(t, dir_id, name)) != NULL) {
		(void)stage_settle(fs, s);
		stages_unref(fs, t, s);
	}
}

/* ---- notes ---- */

struct note {
	pid_t tid; /* 0: free */
	bool write;
	uint64_t nid, born_us;
	uint64_t dir_id; /* of the name that the thread will look up again; 0: not known */
	char name[COMPONENT_MAX];
	struct stage *stage;
};

struct notes {
	pthread_mutex_t lock;
	atomic_int live;
	struct note note[NOTES]; /* guarded by lock */
};

struct notes *notes_new(void)
{
	struct notes *n = calloc(1, sizeof(*n));
	if (n != NULL && pthread_mutex_init(&n->lock, NULL) != 0) {
		free(n);
		return NULL;
	}
	return n;
}

static struct note *find_note(struct notes *n, pid_t tid)
{
	for (size_t i = 0; i < NOTES; i++)
		if (n->note[i].tid == tid)
			return &n->note[i];
	return NULL;
}

/* Frees the slot and hands its stage to the caller. */
static struct stage *clear(struct notes *n, struct note *note)
{
	struct stage *s = note->stage;
	if (note->tid != 0)
		atomic_fetch_sub(&n->live, 1);
	*note = (struct note){ 0 };
	return s;
}

static struct note *oldest_note(struct notes *n)
{
	struct note *oldest = &n->note[0];
	for (size_t i = 0; i < NOTES; i++) {
		if (n->note[i].tid == 0)
			return &n->note[i];
		if (n->note[i].born_us < oldest->born_us)
			oldest = &n->note[i];
	}
	return oldest;
}

static void drop_stage(struct fs *fs, struct stage *s)
{
	if (s != NULL)
		stages_unref(fs, fs->stages, s);
}

/* Notes of threads that never came back; their stages go outside the lock. */
#define EXPIRE_MAX 8
static size_t expire(struct notes *n, struct stage *dropped[EXPIRE_MAX])
{
	uint64_t now = clock_mono_us();
	size_t count = 0;
	for (size_t i = 0; i < NOTES && count < EXPIRE_MAX; i++)
		if (n->note[i].tid != 0 && now - n->note[i].born_us >= NOTE_LIFE_US) {
			struct stage *s = clear(n, &n->note[i]);
			if (s != NULL)
				dropped[count++] = s;
		}
	return count;
}

static bool is_for(const struct note *note, uint64_t dir_id, struct span name)
{
	return note->dir_id != 0 && note->dir_id == dir_id && span_is(name, note->name);
}

static void set_note(
	struct note *note, pid_t tid, uint64_t nid, const struct item *item, bool write)
{
	*note = (struct note){ .tid = tid, .write = write, .nid = nid };
	note->born_us = clock_mono_us();
	if (item != NULL) {
		note->dir_id = item->parent;
		(void)item_component(item, note->name);
	}
}

enum note_state notes_refuse(struct fs *fs, struct notes *n, pid_t tid, uint64_t nid,
	const struct item *item, bool write)
{
	struct stage *dropped = NULL, *expired[EXPIRE_MAX];
	char name[COMPONENT_MAX] = "";
	if (item != NULL)
		(void)item_component(item, name);
	pthread_mutex_lock(&n->lock);
	size_t nexpired = expire(n, expired);
	struct note *note = find_note(n, tid);
	bool again = note != NULL &&
		(note->nid == nid || (item != NULL && is_for(note, item->parent, span_of(name))));
	if (!again) {
		if (note == NULL)
			note = oldest_note(n);
		dropped = clear(n, note);
		set_note(note, tid, nid, item, write);
		atomic_fetch_add(&n->live, 1);
	}
	pthread_mutex_unlock(&n->lock);
	drop_stage(fs, dropped);
	while (nexpired > 0)
		drop_stage(fs, expired[--nexpired]);
	return again ? NOTE_SECOND : NOTE_NONE;
}

bool notes_wants_stage(struct fs *fs, struct notes *n, pid_t tid, uint64_t dir_id, struct span name,
	struct stage **ret_stage)
{
	if (atomic_load(&n->live) == 0)
		return false;
	struct stage *expired[EXPIRE_MAX];
	pthread_mutex_lock(&n->lock);
	size_t nexpired = expire(n, expired);
	const struct note *note = find_note(n, tid);
	bool wants = note != NULL && note->write && is_for(note, dir_id, name);
	*ret_stage = wants && note->stage != NULL ? stages_get(fs->stages, note->stage->nid) : NULL;
	pthread_mutex_unlock(&n->lock);
	while (nexpired > 0)
		drop_stage(fs, expired[--nexpired]);
	return wants;
}

struct stage *notes_given(struct fs *fs, struct notes *n, pid_t tid, const struct item *item)
{
	char name[COMPONENT_MAX];
	struct stage *s = NULL;
	(void)item_component(item, name);
	pthread_mutex_lock(&n->lock);
	const struct note *note = find_note(n, tid);
	if (note != NULL && note->stage != NULL && note->stage->dir_id == item->parent &&
		span_is(span_make(note->stage->name, note->stage->name_len), name))
		s = stages_get(fs->stages, note->stage->nid);
	pthread_mutex_unlock(&n->lock);
	return s;
}

void notes_set_stage(struct fs *fs, struct notes *n, pid_t tid, struct stage *s)
{
	struct stage *dropped = s;
	pthread_mutex_lock(&n->lock);
	struct note *note = find_note(n, tid);
	if (note != NULL) {
		dropped = note->stage;
		note->stage = s;
	}
	pthread_mutex_unlock(&n->lock);
	drop_stage(fs, dropped);
}

void notes_clear(struct fs *fs, struct notes *n, pid_t tid)
{
	if (atomic_load(&n->live) == 0)
		return;
	struct stage *dropped = NULL;
	pthread_mutex_lock(&n->lock);
	for (size_t i = 0; i < NOTES && dropped == NULL; i++)
		if (n->note[i].tid == tid)
			dropped = clear(n, &n->note[i]);
	pthread_mutex_unlock(&n->lock);
	drop_stage(fs, dropped);
}

bool notes_expects(struct notes *n, pid_t tid, const struct stage *s, uint64_t nid)
{
	if (atomic_load(&n->live) == 0)
		return false;
	pthread_mutex_lock(&n->lock);
	const struct note *note = find_note(n, tid);
	bool expects = note != NULL && (note->stage == s || note->nid == nid);
	pthread_mutex_unlock(&n->lock);
	return expects;
}

void notes_free(struct fs *fs, struct notes *n)
{
	if (n == NULL)
		return;
	for (size_t i = 0; i < NOTES; i++)
		drop_stage(fs, clear(n, &n->note[i]));
	pthread_mutex_destroy(&n->lock);
	free(n);
}
