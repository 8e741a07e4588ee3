/* SPDX-License-Identifier: MIT */
#include "fs/write/notes.h"

#include "base/clock.h"
#include "base/lock.h"

#include <stdlib.h>

/* As many threads may be between the two steps at once.  They are spread over sets by their
 * number, so that a look at one set is enough. */
#define NOTE_SETS 256
#define NOTE_SET 16
/* Longer than this process may stand still (stopped, swapped out) between the two steps. */
#define NOTE_LIFE_US UINT64_C(10000000)

struct note {
	pid_t tid; /* 0: free */
	enum note_what what;
	bool missed; /* the last look-up of the name found nothing */
	/* Look-ups that the stage was given for by a guess; 0: none, its open was refused. */
	unsigned guessed;
	uint64_t nid, born_us;
	uint64_t found;  /* the node that its look-up of the name gave it; 0: none yet */
	uint64_t dir_id; /* of the name that the thread looks up again; 0: it has looked none up */
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
 * renamed since. */
static void learn_name(struct note *note, uint64_t dir_id, struct span name)
{
	if (note->dir_id != 0 || name.n >= COMPONENT_MAX)
		return;
	note->dir_id = dir_id;
	memcpy(note->name, name.p, name.n);
	note->name[name.n] = 0;
}

static void set_note(struct note *note, pid_t tid, uint64_t nid, enum note_what what)
{
	*note = (struct note){ .tid = tid, .what = what, .nid = nid };
	note->born_us = clock_mono_us();
}

/* Tells whether the request that comes to the node ends the walk that the note is about.  A walk
 * that was given a staged write ends at that one's own node.  A request for another node has begun
 * a new walk: the old one ended in an error that we were not told.  The same holds for a writer
 * where a reader was refused, and for any other request where only a look was. */
static enum note_state ends_walk(
	const struct note *note, uint64_t nid, const struct item *item, enum note_what what)
{
	char name[COMPONENT_MAX];
	if (note == NULL || note->missed || note->guessed != 0 || note->stage != NULL ||
		what > note->what || (what == NOTE_STAT && note->what != NOTE_STAT))
		return NOTE_NONE;
	if (note->dir_id == 0)
		return note->nid == nid ? NOTE_LINK : NOTE_NONE;
	/* What it found may have come to the name from another, which the item says then. */
	if (note->nid == nid || note->found == nid)
		return NOTE_SECOND;
	size_t n = item != NULL ? item_component(item, name) : 0;
	return item != NULL && is_for(note, item->parent, span_make(name, n)) ? NOTE_SECOND
									      : NOTE_NONE;
}

enum note_state notes_refuse(struct fs *fs, struct notes *n, pid_t tid, uint64_t nid,
	const struct item *item, enum note_what what)
{
	struct stage *dropped = NULL, *expired[EXPIRE_MAX];
	mutex_lock(&n->lock);
	size_t nexpired = expire(n, tid, expired);
	struct note *note = find_note(n, tid);
	enum note_state state = ends_walk(note, nid, item, what);
	if (state == NOTE_NONE) {
		if (note == NULL)
			note = note_for(n, tid);
		dropped = clear(n, note);
		set_note(note, tid, nid, what);
		atomic_fetch_add(&n->live, 1);
	}
	mutex_unlock(&n->lock);
	drop_stage(fs, dropped);
	while (nexpired > 0)
		drop_stage(fs, expired[--nexpired]);
	return state;
}

/* A staged write that was given by a guess and not opened at once: tools look at a file before they
 * write it.  A thread that looks more often does something else. */
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
		set_note(note, tid, 0, NOTE_WRITE);
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

bool notes_expects(struct notes *n, pid_t tid, const struct stage *s)
{
	if (atomic_load(&n->live) == 0)
		return false;
	mutex_lock(&n->lock);
	const struct note *note = find_note(n, tid);
	bool expects = note != NULL && !note->missed && note->stage == s;
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
