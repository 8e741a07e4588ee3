/* SPDX-License-Identifier: MIT */
#include "fs/requests/task.h"

#include "base/clock.h"
#include "base/lock.h"
#include "fs/cache/notify.h"

#include <stdlib.h>
#include <string.h>

/* How long a read works before others of its pool have a turn. */
#define SLICE_US 50000

bool task_given_up(const struct task *t)
{
	return atomic_load(&t->call.fs->stopping) ||
		(t->call.req != NULL && fuse_req_interrupted(t->call.req));
}

static bool is_interrupted(const struct caller *vcall)
{
	const struct task *t =
		(const struct task *)((const char *)vcall - offsetof(struct task, vcall));
	return task_given_up(t) ||
		(t->slice_end_us != 0 && clock_mono_us() > t->slice_end_us &&
			workers_wanted(t->call.fs->pools[t->pool]));
}

/* ---- turns: one request of an open file at a time, and no thread waits for its turn ---- */

/* Whether it has its turn now; else it will get it. */
static bool take_turn(struct task *t)
{
	struct turns *turns = &t->handle->turns;
	mutex_lock(&turns->lock);
	bool mine = !turns->taken;
	turns->taken = true;
	if (!mine && turns->last != NULL)
		turns->last->next = &t->job;
	else if (!mine)
		turns->first = &t->job;
	if (!mine)
		turns->last = &t->job;
	mutex_unlock(&turns->lock);
	return mine;
}

/* The one whose turn it is now; NULL: nobody's. */
static struct task *pass_turn(struct turns *turns)
{
	mutex_lock(&turns->lock);
	struct job *next = turns->first;
	if (next != NULL)
		turns->first = next->next;
	else
		turns->taken = false;
	if (turns->first == NULL)
		turns->last = NULL;
	mutex_unlock(&turns->lock);
	return (struct task *)next;
}

static void run_task(struct job *job);

static bool submit(struct task *t)
{
	return t->pool != VPOOL_INLINE && workers_submit(t->call.fs->pools[t->pool], &t->job);
}

/* ---- waiting without a thread ---- */

static void on_ready(struct waiter *w)
{
	struct task *t = (struct task *)((char *)w - offsetof(struct task, waiter));
	if (!submit(t))
		run_task(&t->job);
}

/* libfuse calls this with the request locked. */
static void on_interrupt(fuse_req_t req, void *arg)
{
	struct task *t = arg;
	(void)req;
	if (waiters_cancel(t->call.fs->waiters, &t->waiter))
		on_ready(&t->waiter);
}

/* Returns the task if it need not wait. */
static struct task *park(struct task *t)
{
	t->parks = false;
	t->parked = true;
	t->waiter.ready = on_ready;
	fuse_req_interrupt_func(t->call.req, on_interrupt, t);
	return waiters_add(t->call.fs->waiters, &t->waiter, t->seen) ? NULL : t;
}

void task_park(struct task *t, const struct vwait *wait)
{
	t->parks = true;
	t->waiter.key = wait->key;
	t->waiter.until_us = wait->until_us;
	t->seen = wait->seen;
}

/* ---- running ---- */

/* What is to be run next: itself, or who waited for the handle.  No thread and no turn is kept for as
 * long as somebody holds a directory: he may wait for a file that the kernel holds for a write, which
 * waits for this thread or this turn. */
static struct task *run_one(struct task *t)
{
	struct fs *fs = t->call.fs;
	if (t->parked) /* waits for an interruption that is being handled right now */
		fuse_req_interrupt_func(t->call.req, NULL, NULL);
	t->parked = false;
	struct handle *h = t->handle;
	struct task *next = NULL;
	notify_limit_wait(true);
	call_works(&t->call);
	t->run(t);
	call_works(NULL);
	notify_limit_wait(false);
	if (t->again) {
		t->again = false;
		return t;
	}
	if (t->parks)
		return park(t);
	if (h != NULL) {
		next = pass_turn(&h->turns);
		notify_limit_wait(true);
		handle_unref(fs, h); /* may be the last, and commit what no close decided */
		notify_limit_wait(false);
	}
	free(t);
	return next;
}

static void run_task(struct job *job)
{
	struct task *t = (struct task *)job;
	do
		t = run_one(t);
	while (t != NULL && !submit(t));
}

void task_dispatch(struct task *t, enum vpool pool)
{
	t->pool = pool;
	call_works(NULL);
	if (t->handle != NULL && !take_turn(t))
		return;
	if (!submit(t))
		run_task(&t->job);
}

void task_dispatch_viewed(struct task *t, enum vpool pool)
{
	const struct fuse_call *c = &t->call;
	if (c->fs->options.allow_other && t->vcall.uid != 0) {
		requester_init(&t->requester, c->fs, t->vcall.uid, t->vcall.gid, call_thread(c));
		t->vcall.requester = &t->requester;
	}
	task_dispatch(t, pool);
}

void task_begin_slice(struct task *t)
{
	t->slice_end_us = clock_mono_us() + SLICE_US;
}

/* ---- making ---- */

static void refuse_task(const struct fuse_call *c)
{
	struct fuse_call failed = *c;
	reply_err(&failed, ERR_NO_MEMORY);
}

/* NULL: no memory, and no reply yet. */
static struct task *make_task(
	const struct fuse_call *c, void (*run)(struct task *t), uint64_t nid, size_t n)
{
	struct task *t = calloc(1, sizeof(*t) + n);
	if (t == NULL)
		return NULL;
	t->job.run = run_task;
	t->vcall = (struct caller){
		.uid = c->uid, .gid = c->gid, .thread = c->tid, .interrupted = is_interrupted
	};
	t->call = *c;
	t->run = run;
	t->nid = nid;
	t->size = n;
	t->vcall.detail = &t->call.detail;
	return t;
}

static struct task *new_task(
	const struct fuse_call *c, void (*run)(struct task *t), uint64_t nid, size_t n)
{
	struct task *t = make_task(c, run, nid, n);
	if (t == NULL)
		refuse_task(c);
	return t;
}

struct task *task_new(const struct fuse_call *c, void (*run)(struct task *t), uint64_t nid,
	const struct fuse_file_info *fi)
{
	struct task *t = new_task(c, run, nid, 0);
	if (t != NULL && fi != NULL)
		t->fi = *fi;
	return t;
}

struct task *task_named(
	const struct fuse_call *c, void (*run)(struct task *t), uint64_t dir, const char *name)
{
	size_t n = strlen(name) + 1;
	size_t n_to = c->to_name != NULL ? strlen(c->to_name) + 1 : 0;
	struct task *t = new_task(c, run, dir, n + n_to);
	if (t == NULL)
		return NULL;
	memcpy(t->bytes, name, n);
	t->call.name = t->bytes;
	if (n == 1) { /* the directory itself */
		t->call.name = NULL;
		t->call.nid = dir;
	}
	if (n_to > 0)
		t->call.to_name = memcpy(t->bytes + n, c->to_name, n_to);
	return t;
}

struct task *task_with_value(const struct fuse_call *c, void (*run)(struct task *t), uint64_t nid,
	const char *name, struct span value)
{
	size_t n = strlen(name) + 1;
	struct task *t = new_task(c, run, nid, n + value.n);
	if (t == NULL)
		return NULL;
	memcpy(t->bytes, name, n);
	if (value.n > 0)
		memcpy(t->bytes + n, value.p, value.n);
	t->size = value.n;
	return t;
}

struct task *task_on_handle(
	const struct fuse_call *c, void (*run)(struct task *t), struct handle *h, struct span bytes)
{
	struct task *t = make_task(c, run, h->nid, bytes.n);
	if (t == NULL) {
		/* Before the reply: a close that follows it must know. */
		if (bytes.n > 0)
			atomic_store(&h->file->write_lost, true);
		refuse_task(c);
		return NULL;
	}
	if (bytes.n > 0)
		memcpy(t->bytes, bytes.p, bytes.n);
	t->handle = h;
	handle_ref(t->handle);
	/* Why a snapshot is gone is noted when it goes. */
	t->call.opened = !nid_is_snapshot(t->nid);
	return t;
}
