/* SPDX-License-Identifier: MIT */
#include "fs/locks.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>

struct claim {
	struct claim *next;
	struct locks *locks;
	uint64_t id, owner;
	bool exclusive;
	bool queued;      /* among the waiting; guarded by the lock */
	bool interrupted; /* before it was queued; guarded by the lock */
	/* It was granted, and an interruption may still come to it: who lets it go leaves it. */
	bool granted, left;   /* guarded by the lock */
	struct fuse_req *req; /* of a waiting one */
};

struct locks {
	pthread_mutex_t lock;
	struct claim *held, *waiting; /* waiting: oldest first; guarded by lock */
};

struct locks *locks_new(void)
{
	struct locks *l = calloc(1, sizeof(*l));
	if (l != NULL && pthread_mutex_init(&l->lock, NULL) != 0) {
		free(l);
		return NULL;
	}
	return l;
}

void locks_free(struct locks *l)
{
	if (l == NULL)
		return;
	for (struct claim *c = l->held, *next; c != NULL; c = next) {
		next = c->next;
		free(c);
	}
	for (struct claim *c = l->waiting, *next; c != NULL; c = next) {
		next = c->next;
		fuse_reply_err(c->req, EINTR);
		free(c);
	}
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static bool is_free(const struct locks *l, const struct claim *wanted)
{
	for (const struct claim *c = l->held; c != NULL; c = c->next)
		if (c->id == wanted->id && c->owner != wanted->owner &&
			(c->exclusive || wanted->exclusive))
			return false;
	return true;
}

static void let_go(struct locks *l, uint64_t owner)
{
	for (struct claim **at = &l->held; *at != NULL;) {
		struct claim *c = *at;
		if (c->owner == owner) {
			*at = c->next;
			c->left = c->granted;
			if (!c->left)
				free(c);
		} else {
			at = &c->next;
		}
	}
}

static void hold(struct locks *l, struct claim *c)
{
	c->next = l->held;
	l->held = c;
}

/* Moves the waiting ones that can have their lock now to the held ones; their requests are
 * answered outside the lock. */
static size_t grant(struct locks *l, struct claim **granted, size_t max)
{
	size_t n = 0;
	for (struct claim **at = &l->waiting; *at != NULL && n < max;) {
		struct claim *c = *at;
		if (is_free(l, c)) {
			*at = c->next;
			c->queued = false;
			c->granted = true;
			granted[n++] = c;
			hold(l, c);
		} else {
			at = &c->next;
		}
	}
	return n;
}

static void answer(struct locks *l, struct claim *c)
{
	struct fuse_req *req = c->req;
	/* Waits for an interruption that is being handled right now. */
	fuse_req_interrupt_func(req, NULL, NULL);
	pthread_mutex_lock(&l->lock);
	c->granted = false;
	bool left = c->left;
	pthread_mutex_unlock(&l->lock);
	if (left)
		free(c);
	fuse_reply_err(req, 0);
}

static void wake(struct locks *l)
{
	struct claim *granted[64];
	size_t n;
	do {
		pthread_mutex_lock(&l->lock);
		n = grant(l, granted, sizeof(granted) / sizeof(granted[0]));
		pthread_mutex_unlock(&l->lock);
		for (size_t i = 0; i < n; i++)
			answer(l, granted[i]);
	} while (n > 0);
}

void locks_release(struct locks *l, uint64_t owner)
{
	pthread_mutex_lock(&l->lock);
	let_go(l, owner);
	pthread_mutex_unlock(&l->lock);
	wake(l);
}

/* libfuse calls this with the request locked: our lock comes second, always. */
static void on_interrupt(fuse_req_t req, void *data)
{
	struct claim *c = data;
	struct locks *l = c->locks;
	pthread_mutex_lock(&l->lock);
	bool was_queued = c->queued;
	for (struct claim **at = &l->waiting; was_queued && *at != NULL; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			break;
		}
	c->queued = false;
	c->interrupted = true;
	pthread_mutex_unlock(&l->lock);
	if (was_queued) {
		fuse_reply_err(req, EINTR);
		free(c);
	}
}

static void move_claims(struct claim *first, uint64_t from, uint64_t to)
{
	for (struct claim *c = first; c != NULL; c = c->next)
		if (c->id == from)
			c->id = to;
}

/* Of a new claim, with the lock held. */
static void set_id(struct locks *l, struct claim *c, lock_id_fn id, const void *arg)
{
	struct lock_id is = id(arg);
	if (is.now != is.before) { /* locks_move() is about to come */
		move_claims(l->held, is.before, is.now);
		move_claims(l->waiting, is.before, is.now);
	}
	c->id = is.now;
}

static void wait_for(struct locks *l, struct claim *c, lock_id_fn id, const void *arg)
{
	struct fuse_req *req = c->req;
	fuse_req_interrupt_func(req, on_interrupt, c);
	pthread_mutex_lock(&l->lock);
	bool interrupted = c->interrupted;
	if (!interrupted) {
		set_id(l, c, id, arg); /* nobody has moved it meanwhile */
		struct claim **last = &l->waiting;
		while (*last != NULL)
			last = &(*last)->next;
		*last = c;
		c->queued = true;
	}
	pthread_mutex_unlock(&l->lock);
	if (interrupted) {
		fuse_reply_err(req, EINTR);
		free(c);
		return;
	}
	wake(l); /* it may have become free in between */
}

void locks_move(struct locks *l, uint64_t from, uint64_t to)
{
	pthread_mutex_lock(&l->lock);
	move_claims(l->held, from, to);
	move_claims(l->waiting, from, to);
	pthread_mutex_unlock(&l->lock);
}

void locks_flock(struct locks *l, struct fuse_req *req, lock_id_fn id, const void *arg,
	uint64_t owner, int operation)
{
	/* A lock is changed by letting go and asking anew, as on every file system. */
	locks_release(l, owner);
	if ((operation & LOCK_UN) != 0) {
		fuse_reply_err(req, 0);
		return;
	}
	struct claim *c = calloc(1, sizeof(*c));
	if (c == NULL) {
		fuse_reply_err(req, ENOLCK);
		return;
	}
	*c = (struct claim){
		.locks = l, .owner = owner, .req = req, .exclusive = (operation & LOCK_EX) != 0
	};
	pthread_mutex_lock(&l->lock);
	set_id(l, c, id, arg);
	bool got = is_free(l, c);
	if (got)
		hold(l, c);
	pthread_mutex_unlock(&l->lock);
	if (got) {
		fuse_reply_err(req, 0);
	} else if ((operation & LOCK_NB) != 0) {
		free(c);
		fuse_reply_err(req, EWOULDBLOCK);
	} else {
		wait_for(l, c, id, arg);
	}
}
