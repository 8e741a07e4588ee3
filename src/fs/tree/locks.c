/* SPDX-License-Identifier: MIT */
#include "fs/tree/locks.h"

#include "base/lock.h"
#include "fs/tree/lock_table.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>

struct locks *locks_new(size_t max_ranges)
{
	struct locks *l = calloc(1, sizeof(*l));
	if (l != NULL && mutex_init(&l->lock, RANK_LOCKS) != 0) {
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
	for (size_t i = 0; i < LOCK_BUCKETS; i++)
		for (struct locked *f = l->files[i], *next; f != NULL; f = next) {
			next = f->next;
			free_file(f);
		}
	for (struct range_user *u = l->users, *next; u != NULL; u = next) {
		next = u->next;
		free(u);
	}
	mutex_destroy(&l->lock);
	free(l);
}

/* The reply to a request that does not wait. */
static void answer_at_once(struct fuse_req *req, const struct lock_ask *ask, int code)
{
	if (code == ENOLCK && ask->refused != NULL)
		ask->refused(ask->call);
	fuse_reply_err(req, code);
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
	mutex_lock(&l->lock);
	bool was_queued = w->queued;
	w->interrupted = true;
	if (was_queued) {
		lock_table_unqueue(w);
		lock_table_tidy(l, w->file);
	}
	mutex_unlock(&l->lock);
	if (was_queued) {
		fuse_reply_err(req, EINTR);
		free(w);
	}
}

/* ---- locking ---- */

/* EAGAIN: it waits now, if there is a w to wait. */
static int set_now(struct locks *l, const struct lock_ask *ask, bool flock, struct range *wanted,
	struct wait *w, struct wait **ready)
{
	lock_assert_held(&l->lock);
	struct locked *f = lock_table_file(l, ask->id, flock);
	wanted->user = flock ? NULL : lock_table_user(l, ask);
	if (f == NULL || (!flock && wanted->user == NULL)) {
		lock_table_tidy(l, f);
		return ENOLCK;
	}
	int code = lock_table_set(l, f, wanted);
	if (code == EAGAIN && w != NULL) {
		w->wanted = *wanted;
		code = lock_table_wait(l, f, w);
	}
	if (code == 0)
		lock_table_grant(l, f, ready);
	lock_table_tidy(l, f);
	return code;
}

static void wait_for(struct locks *l, struct fuse_req *req, const struct lock_ask *ask, bool flock,
	struct range *wanted)
{
	struct wait *ready = NULL, *w = calloc(1, sizeof(*w));
	if (w == NULL) {
		answer_at_once(req, ask, ENOLCK);
		return;
	}
	w->locks = l;
	w->req = req;
	fuse_req_interrupt_func(req, on_interrupt, w);
	mutex_lock(&l->lock);
	/* It may have become free in between. */
	int code = w->interrupted ? EINTR : set_now(l, ask, flock, wanted, w, &ready);
	if (code != EAGAIN)
		w->code = code;
	mutex_unlock(&l->lock);
	if (code != EAGAIN)
		answer(w);
	answer_all(ready);
}

static void set(struct locks *l, struct fuse_req *req, const struct lock_ask *ask, bool flock,
	struct range *wanted, bool waits)
{
	struct wait *ready = NULL;
	mutex_lock(&l->lock);
	int code = set_now(l, ask, flock, wanted, NULL, &ready);
	mutex_unlock(&l->lock);
	if (code == EAGAIN && waits)
		wait_for(l, req, ask, flock, wanted);
	else
		answer_at_once(req, ask, code);
	answer_all(ready);
}

static struct range range_of(const struct lock_ask *ask, const struct flock *f)
{
	uint64_t begin = (uint64_t)f->l_start, n = (uint64_t)f->l_len;
	return (struct range){ .via = ask->via,
		.owner = ask->owner,
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
	mutex_lock(&l->lock);
	const struct locked *f = *lock_table_place(l, ask->id, false);
	const struct range *r = f != NULL ? ranges_conflict(&f->held, &wanted) : NULL;
	if (r != NULL)
		found = (struct flock){ .l_type = r->type == RANGE_SHARED ? F_RDLCK : F_WRLCK,
			.l_whence = SEEK_SET,
			.l_start = (off_t)r->begin,
			.l_len = r->last == RANGE_END ? 0 : (off_t)(r->last - r->begin + 1),
			.l_pid = r->pid };
	mutex_unlock(&l->lock);
	fuse_reply_lock(req, &found);
}

bool locks_used(const struct locks *l)
{
	return atomic_load_explicit(&l->used, memory_order_relaxed);
}

bool locks_any(struct locks *l)
{
	mutex_lock(&l->lock);
	bool any = l->ranges > 0;
	mutex_unlock(&l->lock);
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
	lock_assert_held(&l->lock);
	for (struct locked *f; (f = first_meant(*via, flock, owner)) != NULL;) {
		for (struct range *r = *via, *next; r != NULL; r = next) {
			next = r->via_next;
			if (file_of(r) == f && is_meant(r, flock, owner))
				range_drop(r);
		}
		lock_table_grant(l, f, ready);
		lock_table_tidy(l, f);
	}
}

void locks_release(struct locks *l, struct range **via)
{
	struct wait *ready = NULL;
	mutex_lock(&l->lock);
	release_via(l, via, false, 0, &ready);
	release_via(l, via, true, 0, &ready);
	mutex_unlock(&l->lock);
	answer_all(ready);
}

void locks_close(struct locks *l, const struct lock_ask *ask)
{
	struct wait *ready = NULL;
	mutex_lock(&l->lock);
	struct locked *f = *lock_table_place(l, ask->id, false);
	for (struct range *r = f != NULL ? f->held.first : NULL, *next; r != NULL; r = next) {
		next = r->next;
		if (r->owner == ask->owner)
			range_drop(r);
	}
	if (f != NULL) {
		lock_table_grant(l, f, &ready);
		lock_table_tidy(l, f);
	}
	/* And those of what the file was when it was locked. */
	release_via(l, ask->via, false, ask->owner, &ready);
	mutex_unlock(&l->lock);
	answer_all(ready);
}

void locks_flock(struct locks *l, struct fuse_req *req, const struct lock_ask *ask, int operation)
{
	struct wait *ready = NULL;
	struct range wanted = { .via = ask->via,
		.owner = ask->owner,
		.last = RANGE_END,
		.type = (operation & LOCK_EX) != 0 ? RANGE_EXCLUSIVE : RANGE_SHARED };
	/* A lock is changed by letting go and asking anew, as on every file system. */
	mutex_lock(&l->lock);
	release_via(l, ask->via, true, 0, &ready);
	mutex_unlock(&l->lock);
	answer_all(ready);
	if ((operation & LOCK_UN) != 0)
		fuse_reply_err(req, 0);
	else
		set(l, req, ask, true, &wanted, (operation & LOCK_NB) == 0);
}
