/* SPDX-License-Identifier: MIT */
#include "fs/write/stages.h"

#include "base/clock.h"
#include "base/lock.h"
#include "fs/cache/notify.h"
#include "fs/core/nid.h"

#include <stdlib.h>

#define BUCKETS 1024
/* As many threads may be between the two steps at once.  They are spread over sets by their
 * number, so that a look at one set is enough. */
#define NOTE_SETS 256
#define NOTE_SET 16
/* Longer than this process may stand still (stopped, swapped out) between the two steps. */
#define NOTE_LIFE_US UINT64_C(10000000)

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

#define GUESSES_AT_ONCE 16
/* Stages of a row that one thread is given by guesses, one after the other, have the same node as
 * long as nobody was given another one under the name: where the kernel still has it there, a
 * look-up finds it right.  It must not where another look-up came in between: the kernel would
 * keep what that one found, and nobody would tell it of the commit. */
static uint64_t new_node(struct stages *t, const struct stage *s, size_t bucket, pid_t tid)
{
	if (tid != 0 && s->row_id != 0) {
		uint64_t which = mix(mix(mix(0, (uint64_t)tid), atomic_load(&t->given[bucket])),
			atomic_load(&t->given_any));
		/* The one before may be open: then a node beside it, that tells the row too. */
		for (unsigned i = 0; i < GUESSES_AT_ONCE; i++) {
			uint64_t nid = nid_make_private(s->row_id, which + i);
			if (find_stage(t, nid) == NULL)
				return nid;
		}
	}
	return NID_PRIVATE | ++t->next;
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
			mutex_lock(&s->lock);
			bool is = s->row_id == id || s->draft_id == id;
			mutex_unlock(&s->lock);
			if (is)
				notify_attributes(fs->notifier, s->nid);
			stages_unref(fs, t, s);
		}
	}
}

/* Marks the stages in one bucket; answers one that is still a draft in memory, with a
 * reference. */
static struct stage *expose_bucket(
	struct stages *t, size_t bucket, uint64_t dir_id, const char *name)
{
	lock_assert_held(&t->lock);
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
	mutex_lock(&t->lock);
	if (name != NULL)
		draft = expose_bucket(t, bucket_of(dir_id, name), dir_id, name);
	for (size_t i = 0; name == NULL && draft == NULL && i < BUCKETS; i++)
		draft = expose_bucket(t, i, dir_id, NULL);
	mutex_unlock(&t->lock);
	return draft;
}

void stages_expose(struct fs *fs, struct stages *t, uint64_t dir_id, const char *name)
{
	struct stage *s;
	/* First: a stage that is added meanwhile is seen below, or gets another node than before. */
	atomic_fetch_add(name != NULL ? &t->given[bucket_of(dir_id, name)] : &t->given_any, 1);
	while (atomic_load(&t->count) > 0 && (s = expose_some(t, dir_id, name)) != NULL) {
		(void)stage_settle(fs, s);
		stages_unref(fs, t, s);
	}
}

/* ---- notes ---- */

struct note {
	pid_t tid; /* 0: free */
	enum note_what what;
	bool missed; /* the last look-up of the name found nothing */
	bool walks;  /* a name was looked up since it was refused */
	unsigned
		guessed; /* look-ups that the stage was given for by a guess; 0: none, it was refused */
	uint64_t nid, born_us;
	uint64_t found;  /* the node that its look-up of the name gave it; 0: none yet */
	uint64_t dir_id; /* of the name that the thread will look up again; 0: not known */
	char name[COMPONENT_MAX];
	struct stage *stage;
};

struct notes {
	struct mutex lock;
	atomic_int live;
	size_t turn;                           /* the set to tidy next; guarded by lock */
	uint64_t tidied_us;                    /* guarded by lock */
	struct note sets[NOTE_SETS][NOTE_SET]; /* guarded by lock */
};

struct notes *notes_new(void)
{
	struct notes *n = calloc(1, sizeof(*n));
	if (n != NULL && mutex_init(&n->lock, RANK_NOTES) != 0) {
		free(n);
		return NULL;
	}
	return n;
}

static struct note *set_of(struct notes *n, pid_t tid)
{
	return n->sets[(size_t)tid % NOTE_SETS];
}

static struct note *find_note(struct notes *n, pid_t tid)
{
	lock_assert_held(&n->lock);
	struct note *set = set_of(n, tid);
	for (size_t i = 0; i < NOTE_SET; i++)
		if (set[i].tid == tid)
			return &set[i];
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

/* A free one, or the oldest. */
static struct note *note_for(struct notes *n, pid_t tid)
{
	lock_assert_held(&n->lock);
	struct note *set = set_of(n, tid), *oldest = set;
	for (size_t i = 0; i < NOTE_SET; i++) {
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

static size_t expire_set(struct notes *n, struct note *set, uint64_t now, struct stage **dropped)
{
	size_t count = 0;
	for (size_t i = 0; i < NOTE_SET; i++)
		if (set[i].tid != 0 && now - set[i].born_us >= NOTE_LIFE_US) {
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
#define EXPIRE_MAX ((EXPIRE_SETS + 1) * NOTE_SET)
static size_t expire(struct notes *n, pid_t tid, struct stage *dropped[EXPIRE_MAX])
{
	lock_assert_held(&n->lock);
	uint64_t now = clock_mono_us();
	size_t count = expire_set(n, set_of(n, tid), now, dropped);
	if (now - n->tidied_us < EXPIRE_EVERY_US)
		return count;
	n->tidied_us = now;
	for (size_t i = 0; i < EXPIRE_SETS; i++)
		count += expire_set(n, n->sets[n->turn++ % NOTE_SETS], now, &dropped[count]);
	return count;
}

static bool is_for(const struct note *note, uint64_t dir_id, struct span name)
{
	return note->dir_id != 0 && note->dir_id == dir_id && span_is(name, note->name);
}

/* The name by which the thread came is the one that its walk looks up: what it opened may have been
 * renamed since, or not be known any more. */
static void learn_name(struct note *note, uint64_t dir_id, struct span name)
{
	if (note->walks || name.n >= COMPONENT_MAX)
		return;
	note->walks = true;
	note->dir_id = dir_id;
	memcpy(note->name, name.p, name.n);
	note->name[name.n] = 0;
}

static void set_note(
	struct note *note, pid_t tid, uint64_t nid, const struct item *item, enum note_what what)
{
	*note = (struct note){ .tid = tid, .what = what, .nid = nid };
	note->born_us = clock_mono_us();
	if (item != NULL) {
		note->dir_id = item->parent;
		(void)item_component(item, note->name);
	}
}

/* Whether the open that comes to the node ends the walk that the note is about.  One that was given a
 * stage ends at the stage's own node: who comes to another has begun a new walk, since that one
 * ended in an error of which nobody told us.  So has a writer where a reader was refused, and who wants
 * something else than to look where a look was. */
static bool ends_walk(
	const struct note *note, uint64_t nid, const struct item *item, enum note_what what)
{
	char name[COMPONENT_MAX];
	if (note == NULL || note->missed || note->guessed != 0 || note->stage != NULL ||
		what > note->what || (what == NOTE_STAT && note->what != NOTE_STAT))
		return false;
	/* What it found may have come to the name from another, which the item says then. */
	if (note->nid == nid || note->found == nid)
		return true;
	if (item == NULL)
		return false;
	size_t n = item_component(item, name);
	return is_for(note, item->parent, span_make(name, n));
}

enum note_state notes_refuse(struct fs *fs, struct notes *n, pid_t tid, uint64_t nid,
	const struct item *item, enum note_what what)
{
	struct stage *dropped = NULL, *expired[EXPIRE_MAX];
	mutex_lock(&n->lock);
	size_t nexpired = expire(n, tid, expired);
	struct note *note = find_note(n, tid);
	enum note_state state = NOTE_NONE;
	if (ends_walk(note, nid, item, what)) {
		state = note->walks ? NOTE_SECOND : NOTE_LINK;
	} else {
		if (note == NULL)
			note = note_for(n, tid);
		dropped = clear(n, note);
		set_note(note, tid, nid, item, what);
		atomic_fetch_add(&n->live, 1);
	}
	mutex_unlock(&n->lock);
	drop_stage(fs, dropped);
	while (nexpired > 0)
		drop_stage(fs, expired[--nexpired]);
	return state;
}

/* A stage that was given by a guess and not opened at once: tools look at a file before they write
 * it, who looks more often does something else. */
#define GUESS_LOOKUPS 4

bool notes_guess(struct fs *fs, struct notes *n, pid_t tid, uint64_t dir_id, struct span name)
{
	struct stage *dropped = NULL, *expired[EXPIRE_MAX];
	mutex_lock(&n->lock);
	size_t nexpired = expire(n, tid, expired);
	struct note *note = find_note(n, tid);
	bool made = note == NULL;
	if (made || note->guessed != 0) {
		note = made ? note_for(n, tid) : note;
		dropped = clear(n, note);
	}
	if (made) {
		set_note(note, tid, 0, NULL, NOTE_WRITE);
		learn_name(note, dir_id, name);
		note->guessed = 1;
		atomic_fetch_add(&n->live, 1);
	}
	mutex_unlock(&n->lock);
	drop_stage(fs, dropped);
	while (nexpired > 0)
		drop_stage(fs, expired[--nexpired]);
	return made;
}

bool notes_guessed(struct notes *n, pid_t tid, const struct stage *s)
{
	if (atomic_load(&n->live) == 0)
		return false;
	mutex_lock(&n->lock);
	const struct note *note = find_note(n, tid);
	bool guessed = note != NULL && note->guessed != 0 && note->stage == s;
	mutex_unlock(&n->lock);
	return guessed;
}

void notes_unname(struct notes *n, pid_t tid)
{
	mutex_lock(&n->lock);
	struct note *note = find_note(n, tid);
	if (note != NULL)
		note->dir_id = 0;
	mutex_unlock(&n->lock);
}

bool notes_wants_stage(struct fs *fs, struct notes *n, pid_t tid, uint64_t dir_id, struct span name,
	struct stage **ret_stage)
{
	if (atomic_load(&n->live) == 0)
		return false;
	struct stage *dropped = NULL, *expired[EXPIRE_MAX];
	mutex_lock(&n->lock);
	size_t nexpired = expire(n, tid, expired);
	struct note *note = find_note(n, tid);
	if (note != NULL && note->missed && !is_for(note, dir_id, name)) {
		dropped = clear(n, note); /* its walk is over */
		note = NULL;
	}
	if (note != NULL) {
		learn_name(note, dir_id, name);
		note->missed = false; /* until notes_missed() says so */
	}
	bool wants = note != NULL && note->what == NOTE_WRITE && is_for(note, dir_id, name);
	if (wants && note->guessed != 0)
		wants = note->guessed++ < GUESS_LOOKUPS;
	*ret_stage = wants && note->stage != NULL ? stages_get(fs->stages, note->stage->nid) : NULL;
	mutex_unlock(&n->lock);
	drop_stage(fs, dropped);
	while (nexpired > 0)
		drop_stage(fs, expired[--nexpired]);
	return wants;
}

void notes_missed(struct notes *n, pid_t tid, uint64_t dir_id, struct span name)
{
	if (atomic_load(&n->live) == 0)
		return;
	mutex_lock(&n->lock);
	struct note *note = find_note(n, tid);
	if (note != NULL && is_for(note, dir_id, name))
		note->missed = true;
	mutex_unlock(&n->lock);
}

void notes_found(struct notes *n, pid_t tid, uint64_t dir_id, struct span name, uint64_t nid)
{
	if (atomic_load(&n->live) == 0)
		return;
	mutex_lock(&n->lock);
	struct note *note = find_note(n, tid);
	if (note != NULL && note->what != NOTE_WRITE && is_for(note, dir_id, name))
		note->found = nid;
	mutex_unlock(&n->lock);
}

bool notes_await(struct notes *n, uint64_t nid)
{
	bool found = false;
	if (atomic_load(&n->live) == 0)
		return false;
	mutex_lock(&n->lock);
	for (size_t i = 0; i < NOTE_SETS * NOTE_SET && !found; i++) {
		const struct note *note = &n->sets[i / NOTE_SET][i % NOTE_SET];
		found = note->found == nid && note->what == NOTE_READ;
	}
	mutex_unlock(&n->lock);
	return found;
}

void notes_set_stage(struct fs *fs, struct notes *n, pid_t tid, struct stage *s)
{
	struct stage *dropped = s;
	mutex_lock(&n->lock);
	struct note *note = find_note(n, tid);
	if (note != NULL) {
		dropped = note->stage;
		note->stage = s;
	}
	mutex_unlock(&n->lock);
	drop_stage(fs, dropped);
}

void notes_clear(struct fs *fs, struct notes *n, pid_t tid)
{
	if (atomic_load(&n->live) == 0)
		return;
	struct stage *dropped = NULL;
	mutex_lock(&n->lock);
	struct note *note = find_note(n, tid);
	if (note != NULL)
		dropped = clear(n, note);
	mutex_unlock(&n->lock);
	drop_stage(fs, dropped);
}

bool notes_expects(struct notes *n, pid_t tid, const struct stage *s, uint64_t nid)
{
	if (atomic_load(&n->live) == 0)
		return false;
	mutex_lock(&n->lock);
	const struct note *note = find_note(n, tid);
	bool expects = note != NULL && !note->missed && (note->stage == s || note->nid == nid);
	mutex_unlock(&n->lock);
	return expects;
}

void notes_free(struct fs *fs, struct notes *n)
{
	if (n == NULL)
		return;
	for (size_t i = 0; i < NOTE_SETS * NOTE_SET; i++)
		drop_stage(fs, clear(n, &n->sets[i / NOTE_SET][i % NOTE_SET]));
	mutex_destroy(&n->lock);
	free(n);
}
