/* SPDX-License-Identifier: MIT */
#include "fs/cache/notify.h"

#include "base/log.h"
#include "codec/filename.h"
#include "fs/cache/blob.h"
#include "fs/core/idset.h"
#include "fs/core/nid.h"
#include "fs/tree/handle.h"
#include "fs/tree/locks.h"
#include "fs/tree/names.h"
#include "model/key.h"

#include <fuse_lowlevel.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* Whoever holds the directory may wait for another thread of the request loop: few call the kernel
 * by themselves at a time, so that there is one. */
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
	pthread_mutex_t lock;
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
	if (!atomic_load(&n->over))
		(void)fuse_lowlevel_notify_inval_entry(n->fs->session, dir_nid, name, len);
	atomic_fetch_sub(&n->waits, 1);
	atomic_fetch_add(&n->sent, 1);
}

static void drop_pages(struct notifier *n, uint64_t nid)
{
	atomic_fetch_add(&n->waits, 1);
	if (!atomic_load(&n->over))
		(void)fuse_lowlevel_notify_inval_inode(n->fs->session, nid, 0, 0);
	atomic_fetch_sub(&n->waits, 1);
}

void notify_attributes(struct notifier *n, uint64_t nid)
{
	(void)fuse_lowlevel_notify_inval_inode(n->fs->session, nid, -1, 0);
	atomic_fetch_add(&n->sent, 1);
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
	pthread_mutex_lock(&n->lock);
	for (;;) {
		while (n->first == NULL && !n->stop)
			pthread_cond_wait(&n->wake, &n->lock);
		struct work *w = n->first;
		if (w == NULL)
			break;
		n->first = w->next;
		if (n->first == NULL)
			n->last = &n->first;
		n->sending = true;
		pthread_mutex_unlock(&n->lock);
		perform(n, w);
		pthread_mutex_lock(&n->lock);
		n->sending = false;
		n->done++;
		pthread_cond_broadcast(&n->performed);
	}
	pthread_mutex_unlock(&n->lock);
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
	pthread_mutex_lock(&n->lock);
	*n->last = w;
	n->last = &w->next;
	uint64_t number = ++n->came;
	pthread_cond_signal(&n->wake);
	pthread_mutex_unlock(&n->lock);
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
	pthread_mutex_lock(&n->lock);
	while (n->done < number &&
		pthread_cond_clockwait(&n->performed, &n->lock, CLOCK_MONOTONIC, &until) == 0)
		;
	bool done = n->done >= number;
	pthread_mutex_unlock(&n->lock);
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
	pthread_mutex_lock(&n->lock);
	bool busy = n->first != NULL || n->sending || atomic_load(&n->inside) > 0;
	pthread_mutex_unlock(&n->lock);
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

/* ---- changes of the other doors ---- */

/* How long a thread that is patient for a while only waits for all names of a change set. */
#define PATIENCE_MS 1000

static _Thread_local struct {
	bool limited, ran_out;
	uint64_t last; /* the number of the name that was queued last; 0: none was */
} patience;

bool notify_ran_out(void)
{
	return patience.ran_out;
}

void notify_then_reply(struct notifier *n, struct fuse_req *req)
{
	(void)queue(n, 0, (struct span){ 0 }, false, req);
}

void notify_limit_patience(bool limited)
{
	patience.limited = limited;
	patience.ran_out = false;
	patience.last = 0;
}

static void change_name(struct notifier *n, uint64_t dir_nid, const char *name, size_t len)
{
	if (!patience.limited)
		drop_name(n, dir_nid, name, len);
	else
		patience.last = queue(n, dir_nid, span_make(name, len), false, NULL);
}

/* The names of the change set have gone; where patience is limited, as far as that went. */
static void names_changed(struct notifier *n)
{
	if (patience.last != 0 && !patience.ran_out)
		patience.ran_out = !wait_for(n, patience.last, PATIENCE_MS);
	patience.last = 0;
}

/* Directories whose attributes an event has told of already: an import brings a thousand
 * changes of few directories. */
#define TOLD_MAX 32
struct told {
	uint64_t id[TOLD_MAX];
	size_t count;
};

/* A directory's own attributes moved.  The kernel has them from a look at the directory's own
 * name, so `seen` says nothing about them; of a node that it does not know it says so quickly. */
static void dir_changed(struct notifier *n, struct told *told, uint64_t dir_id)
{
	for (size_t i = 0; i < TOLD_MAX; i++)
		if (told->id[i] == dir_id)
			return;
	told->id[told->count++ % TOLD_MAX] = dir_id;
	notify_attributes(n, nid_make(dir_id, 0));
}

/* The name of a child, if the kernel ever looked into the directory, and the directory's own
 * attributes. */
static void child_changed(
	struct notifier *n, struct told *told, uint64_t dir_id, const struct item *child)
{
	if (dir_id == 0)
		return;
	if (idset_count(n->fs->seen, dir_id) != 0) {
		char name[COMPONENT_MAX];
		size_t len = item_component(child, name);
		change_name(n, nid_make(dir_id, 0), name, len);
	}
	dir_changed(n, told, dir_id);
}

static void partition_made(struct notifier *n, struct told *told, const struct change *c)
{
	if (!c->made_partition)
		return;
	if (idset_count(n->fs->seen, c->at.parent) != 0) {
		char key[LIMIT_KEY_BYTES], name[LIMIT_NAME_BYTES + 1];
		key_from_order(c->at.pk.p, c->at.pk.n, key);
		size_t len = filename_encode(span_make(key, c->at.pk.n), FILENAME_PARTITION, name);
		change_name(n, nid_make(c->at.parent, 0), name, len);
	}
	dir_changed(n, told, c->at.parent);
}

/* Keeps a replaced or removed row, or the empty file before it, for those whose second try looked its
 * name up a moment ago.  Others look again. */
static void keep_old(struct notifier *n, const struct change *c)
{
	bool row = c->old.kind == ITEM_ROW && c->old.body.p != NULL &&
		(c->flags & CHANGE_EXCHANGE) == 0;
	bool draft = c->op == CHANGE_DELETE && c->old.kind == ITEM_FILE && c->old.size == 0;
	if (!row && !draft)
		return;
	bool open = idset_count(n->fs->open_files, c->old.id) > 0; /* while it was no row yet */
	if (!open && idset_count(n->fs->seen, c->old.parent) == 0)
		return;
	struct item copy = { 0 };
	const struct blob *blob = NULL;
	if (item_copy(&copy, &c->old) == ERR_OK &&
		blobs_put(n->fs->blobs, &copy, &blob) == ERR_OK) {
		if (open && held_may_keep(n->fs))
			handles_keep(n->fs, blob);
		blobs_unpin(n->fs->blobs, blob);
	}
	if (c->op == CHANGE_DELETE || nid_of(&c->old) != nid_of(&c->now))
		blobs_retire(n->fs->blobs, nid_of(&c->old));
}

/* Whoever locked the empty file has the row's lock. */
static void keep_lock(struct notifier *n, const struct change *changes, size_t count)
{
	const struct change *row = &changes[0], *draft = &changes[1];
	if (count == 2 && row->op == CHANGE_PUT && row->now.kind == ITEM_ROW &&
		draft->op == CHANGE_DELETE && draft->now.kind == ITEM_FILE)
		locks_move(n->fs->locks, draft->now.id, row->now.id);
}

/* A descriptor without an open (O_PATH) goes on standing for the row: what is asked of it was
 * that of the version before. */
static void old_changed(struct notifier *n, enum origin origin, const struct change *c)
{
	bool draft = c->op == CHANGE_DELETE && c->old.kind == ITEM_FILE && c->old.size == 0;
	/* Of what the mount removed the kernel knows, but not of an empty file that became a row. */
	bool gone = c->op == CHANGE_DELETE && (draft || origin != ORIGIN_MOUNT);
	bool replaced = c->op != CHANGE_DELETE && nid_of(&c->old) != nid_of(&c->now);
	if ((c->old.kind == ITEM_ROW || draft) && (gone || replaced) &&
		idset_count(n->fs->seen, c->old.parent) != 0)
		notify_attributes(n, nid_of(&c->old));
}

void notify_old_node(struct notifier *n, uint64_t nid)
{
	blobs_retire(n->fs->blobs, nid);
	notify_attributes(n, nid);
}

/* A rename of a partition rendered rows anew: their nodes are others now.  The request
 * handler that did it may not wait here. */
static void row_rewritten(struct notifier *n, const struct change *first, const struct change *c)
{
	char name[COMPONENT_MAX];
	if (first->op != CHANGE_MOVE || c->op != CHANGE_PUT)
		return;
	notify_old_node(n, nid_of(&c->old));
	size_t len = item_component(&c->now, name);
	notify_name_soon(n, nid_make(c->now.parent, 0), span_make(name, len));
}

/* An empty file that waited under a row's name keeps its node, and its content may change now.  A
 * row's content stays, but with other attributes: those are shown when it is replaced. */
static void drop_content(struct notifier *n, const struct change *c)
{
	if ((c->op == CHANGE_MOVE && c->now.kind == ITEM_FILE) ||
		(c->op == CHANGE_ATTRS && c->now.kind == ITEM_ROW))
		blobs_drop(n->fs->blobs, nid_of(&c->now));
}

/* What the kernel may have cached of what another door changed. */
static void tell(struct notifier *n, struct told *told, const struct change *c)
{
	partition_made(n, told, c);
	child_changed(n, told, c->now.parent, &c->now);
	/* Policies of a table, properties of an account: its own times moved. */
	if (c->op == CHANGE_PUT && item_is_dir(c->now.kind))
		notify_attributes(n, nid_make(c->now.id, 0));
	if (c->left.kind != ITEM_NONE)
		child_changed(n, told, c->left.parent, &c->left);
}

/* Requests wait for this, and what follows in on_event() may wait for a directory that one of them
 * holds. */
static void on_keep(void *arg, const struct change *changes, size_t count)
{
	struct notifier *n = arg;
	atomic_fetch_add(&n->fs->changes, 1);
	for (size_t i = 0; i < count; i++) {
		drop_content(n, &changes[i]);
		keep_old(n, &changes[i]);
	}
	keep_lock(n, changes, count);
}

static void on_event(void *arg, enum origin origin, const struct change *changes, size_t count)
{
	struct notifier *n = arg;
	struct told told = { 0 };
	for (size_t i = 0; i < count; i++) {
		old_changed(n, origin, &changes[i]);
		if (origin == ORIGIN_MOUNT) /* after keep_old(): the old node must not be found */
			row_rewritten(n, &changes[0], &changes[i]);
		else
			tell(n, &told, &changes[i]);
	}
	names_changed(n);
}

/* ---- change sets of several rows ---- */

/* The names go before the commit, and what is looked up until all is told is not kept: once
 * one change of the set can be seen, all others are. */
static uint64_t on_set_begins(void *arg, const struct change *changes, size_t n_changes)
{
	struct notifier *n = arg;
	struct item dir = { 0 };
	enum err e = store_child(n->fs->store, NULL, changes[0].at.parent, CLASS_KEYED,
		changes[0].at.pk, WANT_ATTRS, &dir);
	uint64_t id = e == ERR_OK ? dir.id : 0;
	item_fini(&dir);
	if (id == 0)
		return 0;
	(void)idset_add(n->fs->in_sets, id, 1);
	for (size_t i = 0; i < n_changes && idset_count(n->fs->seen, id) != 0; i++) {
		char key[LIMIT_KEY_BYTES], name[LIMIT_NAME_BYTES + 1];
		struct span order = changes[i].at.key;
		key_from_order(order.p, order.n, key);
		size_t len = filename_encode(span_make(key, order.n), FILENAME_ROW, name);
		change_name(n, nid_make(id, 0), name, len);
	}
	names_changed(n);
	return id;
}

static void on_set_ended(void *arg, uint64_t id)
{
	struct notifier *n = arg;
	(void)idset_add(n->fs->in_sets, id, -1);
}

/* ---- the mount becomes read-only ---- */

/* The kernel refuses that while a file is open for writing, but tells us of the last close, which may
 * commit, when who closed has gone on. */
#define SETTLE_TRIES 10000
static void on_settle(void *arg)
{
	struct fs *fs = ((struct notifier *)arg)->fs;
	const struct timespec step = { .tv_nsec = 1000000 };
	for (int i = 0; i < SETTLE_TRIES && atomic_load(&fs->held.writers) > 0 &&
		!fuse_session_exited(fs->session);
		i++)
		nanosleep(&step, NULL);
	size_t left = atomic_load(&fs->held.writers);
	if (left > 0 && !fuse_session_exited(fs->session))
		log_warning("%zu files that were open for writing are not closed yet", left);
}

static const struct set_watch set_watch = { .keep = on_keep,
	.begins = on_set_begins,
	.ended = on_set_ended,
	.settle = on_settle };

/* ---- life ---- */

enum err notifier_new(struct fs *fs, struct notifier **ret)
{
	struct notifier *n = calloc(1, sizeof(*n));
	if (n == NULL)
		return ERR_NO_MEMORY;
	n->fs = fs;
	n->last = &n->first;
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->wake, NULL);
	pthread_cond_init(&n->performed, NULL);
	if (pthread_create(&n->thread, NULL, run, n) != 0) {
		free(n);
		return ERR_NO_MEMORY;
	}
	service_subscribe(fs->service, on_event, n);
	service_watch_sets(fs->service, &set_watch);
	*ret = n;
	return ERR_OK;
}

void notifier_free(struct notifier *n)
{
	if (n == NULL)
		return;
	service_unsubscribe(n->fs->service);
	pthread_mutex_lock(&n->lock);
	n->stop = true;
	pthread_cond_signal(&n->wake);
	pthread_mutex_unlock(&n->lock);
	pthread_join(n->thread, NULL);
	pthread_cond_destroy(&n->wake);
	pthread_cond_destroy(&n->performed);
	pthread_mutex_destroy(&n->lock);
	free(n);
}
