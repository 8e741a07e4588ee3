/* SPDX-License-Identifier: MIT */
#include "fs/cache/notify.h"

#include "base/lock.h"
#include "base/log.h"
#include "fs/cache/content.h"

#include <fuse_lowlevel.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* The holder of the directory's lock may wait for another thread of the request loop.  So few
 * threads call the kernel by themselves at a time, and some are always left. */
#define INSIDE_MAX 2

struct work {
	struct work *next;
	uint64_t nid;         /* the directory, or the inode; 0: there is only the reply */
	struct fuse_req *req; /* NULL: nobody waits */
	bool inode;
	size_t name_len;
	char name[];
};

struct notifier {
	struct fs *fs;
	pthread_t thread;
	struct mutex lock;
	pthread_cond_t wake;
	pthread_cond_t performed;
	struct work *first, **last; /* guarded by lock */
	uint64_t came, done;        /* how many; guarded by lock */
	bool stop, sending;         /* guarded by lock */
	atomic_uint_fast64_t sent;
	atomic_int inside; /* threads of the request loop that call the kernel by themselves */
	atomic_int waits;  /* threads in a call that may wait for a client */
	atomic_bool over;  /* the mount ends: no such call begins any more */
};

static void drop_name(struct notifier *n, uint64_t dir_nid, const char *name, size_t len)
{
	atomic_fetch_add(&n->waits, 1);
	may_block(BLOCK_IF_BUSY); /* another client may hold the lock, and its request waits */
	if (!atomic_load(&n->over))
		(void)fuse_lowlevel_notify_inval_entry(n->fs->session, dir_nid, name, len);
	atomic_fetch_sub(&n->waits, 1);
	atomic_fetch_add(&n->sent, 1);
}

static void drop_pages(struct notifier *n, uint64_t nid)
{
	atomic_fetch_add(&n->waits, 1);
	may_block(BLOCK_IF_BUSY);
	if (!atomic_load(&n->over))
		(void)fuse_lowlevel_notify_inval_inode(n->fs->session, nid, 0, 0);
	atomic_fetch_sub(&n->waits, 1);
}

void notify_attributes(struct notifier *n, uint64_t nid)
{
	(void)fuse_lowlevel_notify_inval_inode(n->fs->session, nid, -1, 0);
	atomic_fetch_add(&n->sent, 1);
}

void notify_old_node(struct notifier *n, uint64_t nid)
{
	contents_retire(n->fs->contents, nid);
	notify_attributes(n, nid);
}

/* ---- the queue ---- */

static void perform(struct notifier *n, struct work *w)
{
	if (w->inode)
		drop_pages(n, w->nid);
	else if (w->nid != 0)
		drop_name(n, w->nid, w->name, w->name_len);
	if (w->req != NULL)
		fuse_reply_err(w->req, 0);
	free(w);
}

static void *run(void *arg)
{
	struct notifier *n = arg;
	mutex_lock(&n->lock);
	for (;;) {
		while (n->first == NULL && !n->stop)
			cond_wait(&n->wake, &n->lock);
		struct work *w = n->first;
		if (w == NULL)
			break;
		n->first = w->next;
		if (n->first == NULL)
			n->last = &n->first;
		n->sending = true;
		mutex_unlock(&n->lock);
		perform(n, w);
		mutex_lock(&n->lock);
		n->sending = false;
		n->done++;
		pthread_cond_broadcast(&n->performed);
	}
	mutex_unlock(&n->lock);
	return NULL;
}

/* Its number, from 1 on; 0: there is no memory. */
static uint64_t queue(
	struct notifier *n, uint64_t nid, struct span name, bool inode, struct fuse_req *req)
{
	struct work *w = malloc(sizeof(*w) + name.n + 1);
	if (w == NULL) {
		log_error("out of memory: a cached name may be out of date");
		if (req != NULL)
			fuse_reply_err(req, 0);
		return 0;
	}
	*w = (struct work){ .nid = nid, .req = req, .inode = inode, .name_len = name.n };
	if (name.n > 0)
		memcpy(w->name, name.p, name.n);
	w->name[name.n] = 0;
	mutex_lock(&n->lock);
	*n->last = w;
	n->last = &w->next;
	uint64_t number = ++n->came;
	pthread_cond_signal(&n->wake);
	mutex_unlock(&n->lock);
	return number;
}

void notify_name_then_reply(
	struct notifier *n, uint64_t dir_nid, struct span name, struct fuse_req *req)
{
	if (atomic_fetch_add(&n->inside, 1) < INSIDE_MAX) {
		drop_name(n, dir_nid, name.p, name.n);
		fuse_reply_err(req, 0);
	} else {
		(void)queue(n, dir_nid, name, false, req);
	}
	atomic_fetch_sub(&n->inside, 1);
}

void notify_name_now(struct notifier *n, uint64_t dir_nid, struct span name)
{
	drop_name(n, dir_nid, name.p, name.n);
}

void notify_name_soon(struct notifier *n, uint64_t dir_nid, struct span name)
{
	(void)queue(n, dir_nid, name, false, NULL);
}

/* Until the work of that number is done, or for so long.  False: it is not. */
static bool wait_for(struct notifier *n, uint64_t number, unsigned ms)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	mutex_lock(&n->lock);
	while (n->done < number && cond_wait_until(&n->performed, &n->lock, &until) == 0)
		;
	bool done = n->done >= number;
	mutex_unlock(&n->lock);
	return done;
}

void notify_name_within(struct notifier *n, uint64_t dir_nid, struct span name, unsigned ms)
{
	(void)wait_for(n, queue(n, dir_nid, name, false, NULL), ms);
}

void notify_inode_soon(struct notifier *n, uint64_t nid)
{
	(void)queue(n, nid, (struct span){ 0 }, true, NULL);
}

void notify_inode_now(struct notifier *n, uint64_t nid)
{
	drop_pages(n, nid);
}

bool notifier_busy(struct notifier *n)
{
	mutex_lock(&n->lock);
	bool busy = n->first != NULL || n->sending || atomic_load(&n->inside) > 0;
	mutex_unlock(&n->lock);
	return busy;
}

bool notifier_end(struct notifier *n)
{
	atomic_store(&n->over, true);
	return atomic_load(&n->waits) == 0;
}

uint64_t notifier_sent(struct notifier *n)
{
	return atomic_load(&n->sent);
}

/* ---- names of one change set ---- */

/* The time that a thread under notify_limit_wait() may wait in all. */
#define WAIT_BUDGET_MS 1000

static _Thread_local struct {
	bool limited, ran_out;
	uint64_t last; /* the number of the name that was queued last; 0: none was */
} wait_budget;

bool notify_ran_out(void)
{
	return wait_budget.ran_out;
}

void notify_then_reply(struct notifier *n, struct fuse_req *req)
{
	(void)queue(n, 0, (struct span){ 0 }, false, req);
}

void notify_limit_wait(bool limited)
{
	wait_budget.limited = limited;
	wait_budget.ran_out = false;
	wait_budget.last = 0;
}

void notify_wait_for_none(void)
{
	wait_budget.limited = wait_budget.ran_out = true;
}

void notify_change(struct notifier *n, uint64_t dir_nid, struct span name)
{
	if (!wait_budget.limited)
		drop_name(n, dir_nid, name.p, name.n);
	else
		wait_budget.last = queue(n, dir_nid, name, false, NULL);
}

void notify_changes_end(struct notifier *n)
{
	if (wait_budget.last != 0 && !wait_budget.ran_out)
		wait_budget.ran_out = !wait_for(n, wait_budget.last, WAIT_BUDGET_MS);
	wait_budget.last = 0;
}

/* ---- life ---- */

enum err notifier_new(struct fs *fs, struct notifier **ret)
{
	struct notifier *n = calloc(1, sizeof(*n));
	if (n == NULL)
		return ERR_NO_MEMORY;
	n->fs = fs;
	n->last = &n->first;
	mutex_init(&n->lock, RANK_NOTIFIER);
	pthread_cond_init(&n->wake, NULL);
	pthread_cond_init(&n->performed, NULL);
	if (pthread_create(&n->thread, NULL, run, n) != 0) {
		free(n);
		return ERR_NO_MEMORY;
	}
	*ret = n;
	return ERR_OK;
}

void notifier_free(struct notifier *n)
{
	if (n == NULL)
		return;
	mutex_lock(&n->lock);
	n->stop = true;
	pthread_cond_signal(&n->wake);
	mutex_unlock(&n->lock);
	pthread_join(n->thread, NULL);
	pthread_cond_destroy(&n->wake);
	pthread_cond_destroy(&n->performed);
	mutex_destroy(&n->lock);
	free(n);
}
