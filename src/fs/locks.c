/* SPDX-License-Identifier: MIT */
#include "fs/locks.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>

/* Of the table of files; a power of two. */
#define BUCKETS 1024
/* The search for a circle of owners gives up after so many. */
#define SEARCH_STEPS 100000

/* Of a file that somebody has locked or waits for.  flock(2) has one of its own. */
struct locked {
	struct ranges held; /* first */
	struct locked *next;
	uint64_t id;
	bool flock;
	struct wait *waits; /* oldest first */
};

struct wait {
	struct wait *next, **at;         /* of the file; or of those that are to be answered */
	struct wait *all_next, **all_at; /* of those that may take part in a circle */
	struct wait *stack;              /* of the search for one */
	uint64_t seen;                   /* by which search */
	struct locks *locks;
	struct locked *file;
	struct range wanted;
	struct range **via;
	bool queued, interrupted; /* guarded by the lock */
	int code;                 /* the answer */
	struct fuse_req *req;
};

struct locks {
	pthread_mutex_t lock;
	/* All below is guarded by it. */
	struct locked *files[BUCKETS];
	struct range_user *users;
	struct wait *waits; /* for fcntl(2) */
	uint64_t searches;
	size_t ranges, max_ranges; /* of fcntl(2), with the waits for it */
	atomic_bool used;          /* not guarded */
};

struct locks *locks_new(size_t max_ranges)
{
	struct locks *l = calloc(1, sizeof(*l));
	if (l != NULL && pthread_mutex_init(&l->lock, NULL) != 0) {
		free(l);
		return NULL;
	}
	if (l != NULL)
		l->max_ranges = max_ranges;
	return l;
}

static void free_file(struct locked *f)
{
	struct range *r;
	for (struct wait *w = f->waits, *next; w != NULL; w = next) {
		next = w->next;
		fuse_reply_err(w->req, EINTR);
		free(w);
	}
	/* Not range_drop(): the open files have gone by now. */
	while ((r = f->held.first) != NULL) {
		f->held.first = r->next;
		free(r);
	}
	free(f);
}

void locks_free(struct locks *l)
{
	if (l == NULL)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct locked *f = l->files[i], *next; f != NULL; f = next) {
			next = f->next;
			free_file(f);
		}
	for (struct range_user *u = l->users, *next; u != NULL; u = next) {
		next = u->next;
		free(u);
	}
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* ---- the tables, with the lock held ---- */

static struct locked **place_of(struct locks *l, uint64_t id, bool flock)
{
	struct locked **at = &l->files[(id ^ (id >> 10) ^ (id >> 20)) & (BUCKETS - 1)];
	while (*at != NULL && ((*at)->id != id || (*at)->flock != flock))
		at = &(*at)->next;
	return at;
}

static void take_out(struct locks *l, const struct locked *f)
{
	*place_of(l, f->id, f->flock) = f->next;
}

static void put_in(struct locks *l, struct locked *f)
{
	struct locked **at = place_of(l, f->id, f->flock);
	f->next = NULL;
	*at = f;
}

/* NULL: memory is out. */
static struct locked *file_at(struct locks *l, uint64_t id, bool flock)
{
	struct locked *f = *place_of(l, id, flock);
	if (f == NULL && (f = calloc(1, sizeof(*f))) != NULL) {
		f->id = id;
		f->flock = flock;
		put_in(l, f);
	}
	return f;
}

static void tidy(struct locks *l, struct locked *f)
{
	if (f == NULL || f->held.first != NULL || f->waits != NULL)
		return;
	take_out(l, f);
	free(f);
}

static void add_wait(struct wait **last, struct wait *w)
{
	while (*last != NULL)
		last = &(*last)->next;
	w->at = last;
	w->next = NULL;
	*last = w;
}

static void take_wait(struct wait *w)
{
	*w->at = w->next;
	if (w->next != NULL)
		w->next->at = w->at;
}

static void move_one(struct locks *l, uint64_t from, uint64_t to, bool flock)
{
	struct locked *f = *place_of(l, from, flock), *other = *place_of(l, to, flock);
	if (f == NULL || f == other)
		return;
	take_out(l, f);
	if (other == NULL) {
		f->id = to;
		put_in(l, f);
		return;
	}
	ranges_move(&f->held, &other->held);
	for (struct wait *w; (w = f->waits) != NULL;) {
		take_wait(w);
		w->file = other;
		add_wait(&other->waits, w);
	}
	free(f);
}

static void move(struct locks *l, uint64_t from, uint64_t to)
{
	move_one(l, from, to, false);
	move_one(l, from, to, true);
}

void locks_move(struct locks *l, uint64_t from, uint64_t to)
{
	pthread_mutex_lock(&l->lock);
	move(l, from, to);
	pthread_mutex_unlock(&l->lock);
}

static uint64_t id_of(struct locks *l, const struct lock_ask *ask)
{
	struct lock_id is = ask->id(ask->arg);
	if (is.now != is.before) /* locks_move() is about to come */
		move(l, is.before, is.now);
	return is.now;
}

/* Those that hold nothing any more are freed on the way.  NULL: memory is out. */
static struct range_user *user_of(struct locks *l, const struct lock_ask *ask)
{
	for (struct range_user **at = &l->users, *u; (u = *at) != NULL;) {
		if (u->uid == ask->uid)
			return u;
		if (u->n == 0) {
			*at = u->next;
			free(u);
		} else {
			at = &u->next;
		}
	}
	struct range_user *u = calloc(1, sizeof(*u));
	if (u != NULL) {
		*u = (struct range_user){ l->users, ask->uid, ask->first, 0, &l->ranges };
		l->users = u;
	}
	return u;
}

static bool may_have(const struct locks *l, const struct range_user *u, int more)
{
	size_t max = u->first ? l->max_ranges : l->max_ranges - l->max_ranges / 4;
	return more <= 0 ||
		(l->ranges + (size_t)more <= max &&
			(u->first || u->n + (size_t)more <= l->max_ranges / 4));
}

/* EAGAIN: it has to wait. */
static int try_set(
	struct locks *l, struct locked *f, const struct range *wanted, struct range **via)
{
	if (ranges_conflict(&f->held, wanted) != NULL)
		return EAGAIN;
	if (wanted->user != NULL && !may_have(l, wanted->user, ranges_growth(&f->held, wanted)))
		return ENOLCK;
	return ranges_set(&f->held, wanted, via) ? 0 : ENOLCK;
}

/* ---- waiting ---- */

static void unqueue(struct wait *w)
{
	take_wait(w);
	w->queued = false;
	if (w->wanted.user == NULL)
		return;
	w->wanted.user->n--;
	w->locks->ranges--;
	*w->all_at = w->all_next;
	if (w->all_next != NULL)
		w->all_next->all_at = w->all_at;
}

static void queue(struct locks *l, struct locked *f, struct wait *w)
{
	w->file = f;
	w->queued = true;
	add_wait(&f->waits, w);
	if (w->wanted.user == NULL)
		return;
	w->wanted.user->n++;
	l->ranges++;
	w->all_at = &l->waits;
	w->all_next = l->waits;
	if (w->all_next != NULL)
		w->all_next->all_at = &w->all_next;
	l->waits = w;
}

/* After something was released: moves those that need not wait any more to *ready. */
static void grant(struct locks *l, struct locked *f, struct wait **ready)
{
	for (struct wait *w = f->waits, *next; w != NULL; w = next) {
		next = w->next;
		if (ranges_conflict(&f->held, &w->wanted) != NULL)
			continue;
		unqueue(w);
		w->code = try_set(l, f, &w->wanted, w->via);
		w->next = *ready;
		*ready = w;
	}
}

/* Of a wait that is not queued, outside the lock. */
static void answer(struct wait *w)
{
	struct fuse_req *req = w->req;
	int code = w->code;
	/* Waits for an interruption that is being handled right now. */
	fuse_req_interrupt_func(req, NULL, NULL);
	free(w);
	fuse_reply_err(req, code);
}

static void answer_all(struct wait *ready)
{
	for (struct wait *w = ready, *next; w != NULL; w = next) {
		next = w->next;
		answer(w);
	}
}

/* libfuse calls this with the request locked: our lock comes second, always. */
static void on_interrupt(fuse_req_t req, void *data)
{
	struct wait *w = data;
	struct locks *l = w->locks;
	pthread_mutex_lock(&l->lock);
	bool was_queued = w->queued;
	w->interrupted = true;
	if (was_queued) {
		unqueue(w);
		tidy(l, w->file);
	}
	pthread_mutex_unlock(&l->lock);
	if (was_queued) {
		fuse_reply_err(req, EINTR);
		free(w);
	}
}

/* The waits of the owner that this search has not seen. */
static size_t push_waits(struct locks *l, uint64_t owner, struct wait **stack)
{
	size_t steps = 0;
	for (struct wait *w = l->waits; w != NULL; w = w->all_next, steps++)
		if (w->wanted.owner == owner && w->seen != l->searches) {
			w->seen = l->searches;
			w->stack = *stack;
			*stack = w;
		}
	return steps;
}

static struct wait *pop(struct wait **stack)
{
	struct wait *w = *stack;
	if (w != NULL)
		*stack = w->stack;
	return w;
}

/* Whether one of those that it would wait for waits, at any remove, for its owner. */
static bool closes_circle(struct locks *l, struct wait *new)
{
	struct wait *stack = NULL;
	size_t steps = 0;
	l->searches++;
	for (const struct wait *w = new; w != NULL; w = pop(&stack))
		for (const struct range *r = w->file->held.first; r != NULL; r = r->next) {
			if (++steps > SEARCH_STEPS)
				return false;
			if (!range_forbids(r, &w->wanted))
				continue;
			if (r->owner == new->wanted.owner)
				return true;
			steps += push_waits(l, r->owner, &stack);
		}
	return false;
}

/* EAGAIN: it waits now. */
static int begin_wait(struct locks *l, struct locked *f, struct wait *w)
{
	w->file = f;
	if (!f->flock && !may_have(l, w->wanted.user, 1))
		return ENOLCK;
	if (!f->flock && closes_circle(l, w))
		return EDEADLK;
	queue(l, f, w);
	return EAGAIN;
}

/* ---- locking ---- */

/* With the lock held.  EAGAIN: it waits now, if there is a w to wait. */
static int set_now(struct locks *l, const struct lock_ask *ask, bool flock, struct range *wanted,
	struct wait *w, struct wait **ready)
{
	struct locked *f = file_at(l, id_of(l, ask), flock);
	wanted->user = flock ? NULL : user_of(l, ask);
	if (f == NULL || (!flock && wanted->user == NULL)) {
		tidy(l, f);
		return ENOLCK;
	}
	int code = try_set(l, f, wanted, ask->via);
	if (code == EAGAIN && w != NULL) {
		w->wanted = *wanted;
		code = begin_wait(l, f, w);
	}
	if (code == 0)
		grant(l, f, ready);
	tidy(l, f);
	return code;
}

static void wait_for(struct locks *l, struct fuse_req *req, const struct lock_ask *ask, bool flock,
	struct range *wanted)
{
	struct wait *ready = NULL, *w = calloc(1, sizeof(*w));
	if (w == NULL) {
		fuse_reply_err(req, ENOLCK);
		return;
	}
	w->locks = l;
	w->via = ask->via;
	w->req = req;
	fuse_req_interrupt_func(req, on_interrupt, w);
	pthread_mutex_lock(&l->lock);
	/* It may have become free in between. */
	int code = w->interrupted ? EINTR : set_now(l, ask, flock, wanted, w, &ready);
	if (code != EAGAIN)
		w->code = code;
	pthread_mutex_unlock(&l->lock);
	if (code != EAGAIN)
		answer(w);
	answer_all(ready);
}

static void set(struct locks *l, struct fuse_req *req, const struct lock_ask *ask, bool flock,
	struct range *wanted, bool waits)
{
	struct wait *ready = NULL;
	pthread_mutex_lock(&l->lock);
	int code = set_now(l, ask, flock, wanted, NULL, &ready);
	pthread_mutex_unlock(&l->lock);
	if (code == EAGAIN && waits)
		wait_for(l, req, ask, flock, wanted);
	else
		fuse_reply_err(req, code);
	answer_all(ready);
}

static struct range range_of(const struct lock_ask *ask, const struct flock *f)
{
	uint64_t begin = (uint64_t)f->l_start, n = (uint64_t)f->l_len;
	return (struct range){ .owner = ask->owner,
		.begin = begin,
		.last = n == 0 || n > RANGE_END - begin ? RANGE_END : begin + n - 1,
		.type = f->l_type == F_UNLCK   ? RANGE_FREE
			: f->l_type == F_WRLCK ? RANGE_EXCLUSIVE
					       : RANGE_SHARED,
		.pid = f->l_pid };
}

void locks_set(struct locks *l, struct fuse_req *req, const struct lock_ask *ask,
	const struct flock *range, bool waits)
{
	struct range wanted = range_of(ask, range);
	atomic_store(&l->used, true);
	set(l, req, ask, false, &wanted, waits);
}

void locks_get(struct locks *l, struct fuse_req *req, const struct lock_ask *ask,
	const struct flock *range)
{
	struct range wanted = range_of(ask, range);
	struct flock found = *range;
	found.l_type = F_UNLCK;
	pthread_mutex_lock(&l->lock);
	const struct locked *f = *place_of(l, id_of(l, ask), false);
	const struct range *r = f != NULL ? ranges_conflict(&f->held, &wanted) : NULL;
	if (r != NULL)
		found = (struct flock){ .l_type = r->type == RANGE_SHARED ? F_RDLCK : F_WRLCK,
			.l_whence = SEEK_SET,
			.l_start = (off_t)r->begin,
			.l_len = r->last == RANGE_END ? 0 : (off_t)(r->last - r->begin + 1),
			.l_pid = r->pid };
	pthread_mutex_unlock(&l->lock);
	fuse_reply_lock(req, &found);
}

bool locks_used(const struct locks *l)
{
	return atomic_load_explicit(&l->used, memory_order_relaxed);
}

bool locks_any(struct locks *l)
{
	pthread_mutex_lock(&l->lock);
	bool any = l->ranges > 0;
	pthread_mutex_unlock(&l->lock);
	return any;
}

/* ---- releasing ---- */

static struct locked *file_of(const struct range *r)
{
	return (struct locked *)r->of;
}

/* owner 0: any. */
static bool is_meant(const struct range *r, bool flock, uint64_t owner)
{
	return file_of(r)->flock == flock && (owner == 0 || r->owner == owner);
}

static struct locked *first_meant(const struct range *via, bool flock, uint64_t owner)
{
	for (; via != NULL; via = via->via_next)
		if (is_meant(via, flock, owner))
			return file_of(via);
	return NULL;
}

/* File by file: what is granted then may join the same list. */
static void release_via(
	struct locks *l, struct range **via, bool flock, uint64_t owner, struct wait **ready)
{
	for (struct locked *f; (f = first_meant(*via, flock, owner)) != NULL;) {
		for (struct range *r = *via, *next; r != NULL; r = next) {
			next = r->via_next;
			if (file_of(r) == f && is_meant(r, flock, owner))
				range_drop(r);
		}
		grant(l, f, ready);
		tidy(l, f);
	}
}

void locks_release(struct locks *l, struct range **via)
{
	struct wait *ready = NULL;
	pthread_mutex_lock(&l->lock);
	release_via(l, via, false, 0, &ready);
	release_via(l, via, true, 0, &ready);
	pthread_mutex_unlock(&l->lock);
	answer_all(ready);
}

void locks_close(struct locks *l, const struct lock_ask *ask)
{
	struct wait *ready = NULL;
	pthread_mutex_lock(&l->lock);
	struct locked *f = *place_of(l, id_of(l, ask), false);
	for (struct range *r = f != NULL ? f->held.first : NULL, *next; r != NULL; r = next) {
		next = r->next;
		if (r->owner == ask->owner)
			range_drop(r);
	}
	if (f != NULL) {
		grant(l, f, &ready);
		tidy(l, f);
	}
	/* And those of what the file was when it was locked. */
	release_via(l, ask->via, false, ask->owner, &ready);
	pthread_mutex_unlock(&l->lock);
	answer_all(ready);
}

void locks_flock(struct locks *l, struct fuse_req *req, const struct lock_ask *ask, int operation)
{
	struct wait *ready = NULL;
	struct range wanted = { .owner = ask->owner,
		.last = RANGE_END,
		.type = (operation & LOCK_EX) != 0 ? RANGE_EXCLUSIVE : RANGE_SHARED };
	/* A lock is changed by letting go and asking anew, as on every file system. */
	pthread_mutex_lock(&l->lock);
	release_via(l, ask->via, true, 0, &ready);
	pthread_mutex_unlock(&l->lock);
	answer_all(ready);
	if ((operation & LOCK_UN) != 0)
		fuse_reply_err(req, 0);
	else
		set(l, req, ask, true, &wanted, (operation & LOCK_NB) == 0);
}
