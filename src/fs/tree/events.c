/* SPDX-License-Identifier: MIT */
#include "fs/tree/events.h"

#include "base/log.h"
#include "fs/cache/content.h"
#include "fs/cache/notify.h"
#include "fs/cache/stream_sizes.h"
#include "fs/core/idset.h"
#include "fs/core/nid.h"
#include "fs/core/waiters.h"
#include "fs/tree/handle.h"
#include "fs/tree/names.h"
#include "fs/tree/open_quota.h"
#include "fs/tree/told.h"
#include "model/filename.h"
#include "model/key.h"

#include <fuse_lowlevel.h>

#include <time.h>

/* Directories whose attributes an event has told of already: an import brings a thousand
 * changes of few directories. */
#define TOLD_MAX 32
struct told {
	uint64_t id[TOLD_MAX];
	size_t count;
};

/* A directory's own attributes moved.  The kernel has them from a look at the directory's own
 * name, so `seen` says nothing about them; of a node that it does not know it says so quickly. */
static void dir_changed(struct notifier *notifier, struct told *told, uint64_t dir_id)
{
	for (size_t i = 0; i < TOLD_MAX; i++)
		if (told->id[i] == dir_id)
			return;
	told->id[told->count++ % TOLD_MAX] = dir_id;
	notify_attributes(notifier, nid_make(dir_id, 0));
}

/* The name of a child, if the kernel ever looked into the directory, and the directory's own
 * attributes. */
static void child_changed(
	struct fs *fs, struct told *told, uint64_t dir_id, const struct item *child)
{
	if (dir_id == 0)
		return;
	if (idset_count(fs->seen, dir_id) != 0) {
		char name[COMPONENT_MAX];
		size_t len = item_component(child, name);
		notify_change(fs->notifier, nid_make(dir_id, 0), span_make(name, len));
	}
	dir_changed(fs->notifier, told, dir_id);
}

static void partition_made(struct fs *fs, struct told *told, const struct change *c)
{
	if (!c->made_partition)
		return;
	if (idset_count(fs->seen, c->at.parent) != 0) {
		char key[LIMIT_KEY_BYTES], name[LIMIT_NAME_BYTES + 1];
		key_from_order(c->at.pk.p, c->at.pk.n, key);
		size_t len = filename_encode(span_make(key, c->at.pk.n), FILENAME_PARTITION, name);
		notify_change(fs->notifier, nid_make(c->at.parent, 0), span_make(name, len));
	}
	dir_changed(fs->notifier, told, c->at.parent);
}

/* Keeps a replaced or removed row for those whose second try looked its name up a moment ago.
 * Others look again. */
static void retain_old(struct fs *fs, const struct change *c)
{
	if (c->old.kind != ITEM_ROW || c->old.body.p == NULL || c->op == CHANGE_ATTRS ||
		(c->flags & CHANGE_EXCHANGE) != 0)
		return;
	bool open = idset_count(fs->open_files, c->old.id) > 0; /* while it was no row yet */
	if (!open && idset_count(fs->seen, c->old.parent) == 0)
		return;
	bool gone = c->op == CHANGE_DELETE || nid_of(&c->old) != nid_of(&c->now);
	struct item copy = { 0 };
	const struct content *content = NULL;
	if (item_copy(&copy, &c->old) == ERR_OK &&
		(gone ? contents_retain_old : contents_put)(fs->contents, &copy, &content) ==
			ERR_OK) {
		if (open && open_quota_may_keep(fs))
			handles_retain(fs, content);
		contents_unpin(fs->contents, content);
	} else if (gone) {
		contents_retire(fs->contents, nid_of(&c->old));
	}
}

/* Readers of the old version are shown the row's mode, and how many links it has. */
static void old_changed(struct fs *fs, enum origin origin, const struct change *c)
{
	/* Of what the mount removed the kernel knows. */
	bool gone = c->op == CHANGE_DELETE && origin != ORIGIN_MOUNT;
	bool replaced = c->op != CHANGE_DELETE && nid_of(&c->old) != nid_of(&c->now);
	if (c->old.kind == ITEM_ROW && (gone || replaced) &&
		idset_count(fs->seen, c->old.parent) != 0)
		notify_attributes(fs->notifier, nid_of(&c->old));
}

/* A rename of a partition rendered rows anew: their nodes are others now.  The request
 * handler that did it may not wait here. */
static void row_rewritten(
	struct notifier *notifier, const struct change *first, const struct change *c)
{
	char name[COMPONENT_MAX];
	if (first->op != CHANGE_MOVE || c->op != CHANGE_PUT)
		return;
	notify_old_node(notifier, nid_of(&c->old));
	size_t len = item_component(&c->now, name);
	notify_name_soon(notifier, nid_make(c->now.parent, 0), span_make(name, len));
}

/* An empty file that waited under a row's name keeps its node, and its content may change now.  A row
 * whose attributes are set needs nothing here: change sets come in any order, and a later one may have
 * kept it already. */
static void drop_content(struct contents *contents, const struct change *c)
{
	if (c->op == CHANGE_MOVE && c->now.kind == ITEM_FILE)
		contents_drop(contents, nid_of(&c->now));
}

/* The name that another front end moved an item from.  Tables are only moved by the mount. */
static void moved_away(struct fs *fs, struct told *told, const struct change *c)
{
	struct item was = { .kind = c->now.kind, .class = c->at.class, .key = c->at.key };
	if (was.kind == ITEM_FILE && was.class == CLASS_KEYED)
		was.kind = ITEM_ROW;
	child_changed(fs, told, c->at.parent, &was);
}

/* A message may have become visible, or its queue has gone. */
static void wake(struct waiters *waiters, const struct change *c)
{
	if (c->now.kind == ITEM_MESSAGE)
		waiters_wake(waiters, c->now.parent);
	else if (c->now.kind == ITEM_QUEUE && c->op == CHANGE_DELETE)
		waiters_wake(waiters, c->now.id);
}

/* What the kernel may have cached of what another front end changed. */
static void tell(struct fs *fs, struct told *told, const struct change *c)
{
	/* The kernel keeps no names of queues and blobs; an account lists .queue and .blob while it has
	 * some. */
	if (c->now.class == CLASS_QUEUE || c->now.class == CLASS_BLOB) {
		if (c->now.kind == ITEM_QUEUE || c->now.kind == ITEM_CONTAINER)
			dir_changed(fs->notifier, told, c->now.parent);
		return;
	}
	partition_made(fs, told, c);
	child_changed(fs, told, c->now.parent, &c->now);
	if (c->op == CHANGE_MOVE)
		moved_away(fs, told, c);
	/* Policies of a table, properties of an account: its own times moved. */
	if (c->op == CHANGE_PUT && item_is_dir(c->now.kind))
		notify_attributes(fs->notifier, nid_make(c->now.id, 0));
	if (c->left.kind != ITEM_NONE)
		child_changed(fs, told, c->left.parent, &c->left);
}

/* Requests wait for this, and what follows in on_event() may wait for a directory that one of them
 * holds. */
static void on_retain(void *arg, const struct change *changes, size_t count)
{
	struct fs *fs = arg;
	atomic_fetch_add(&fs->changes, 1);
	stream_sizes_changed(fs->stream_sizes, changes, count);
	(void)told_close(fs->told, false);
	for (size_t i = 0; i < count; i++) {
		drop_content(fs->contents, &changes[i]);
		retain_old(fs, &changes[i]);
	}
}

static void on_event(void *arg, enum origin origin, const struct change *changes, size_t count)
{
	struct fs *fs = arg;
	struct told told = { 0 };
	for (size_t i = 0; i < count; i++) {
		old_changed(fs, origin, &changes[i]);
		wake(fs->waiters, &changes[i]);
		if (origin == ORIGIN_MOUNT) /* after retain_old(): the old node must not be found */
			row_rewritten(fs->notifier, &changes[0], &changes[i]);
		else
			tell(fs, &told, &changes[i]);
	}
	waiters_wake(fs->waiters, WAITERS_ANY_CHANGE);
	notify_changes_end(fs->notifier);
}

/* ---- change sets of several rows ---- */

/* The names go before the commit, and what is looked up until all is told is not kept: once
 * one change of the set can be seen, all others are. */
static uint64_t on_set_begins(void *arg, const struct change *changes, size_t n_changes)
{
	struct fs *fs = arg;
	struct item dir = { 0 };
	size_t row = 0;
	while (row + 1 < n_changes && changes[row].at.class == CLASS_QUEUE)
		row++;
	enum err e = store_child(fs->store, NULL, changes[row].at.parent, CLASS_KEYED,
		changes[row].at.pk, WANT_ATTRS, &dir);
	uint64_t id = e == ERR_OK ? dir.id : 0;
	item_fini(&dir);
	if (id == 0)
		return 0;
	(void)idset_add(fs->in_sets, id, 1);
	for (size_t i = 0; i < n_changes && idset_count(fs->seen, id) != 0; i++) {
		char key[LIMIT_KEY_BYTES], name[LIMIT_NAME_BYTES + 1];
		struct span order = changes[i].at.key;
		if (changes[i].at.class == CLASS_QUEUE)
			continue;
		key_from_order(order.p, order.n, key);
		size_t len = filename_encode(span_make(key, order.n), FILENAME_ROW, name);
		notify_change(fs->notifier, nid_make(id, 0), span_make(name, len));
	}
	notify_changes_end(fs->notifier);
	return id;
}

static void on_set_ended(void *arg, uint64_t id)
{
	struct fs *fs = arg;
	(void)idset_add(fs->in_sets, id, -1);
}

/* ---- the mount becomes read-only ---- */

/* The kernel refuses that while a file is open for writing, but tells us of the last close, which
 * may commit, when who closed has gone on. */
#define DRAIN_TRIES 10000
static void on_drain(void *arg)
{
	struct fs *fs = arg;
	const struct timespec step = { .tv_nsec = 1000000 };
	for (int i = 0; i < DRAIN_TRIES && atomic_load(&fs->open_quota->writers) > 0 &&
		!fuse_session_exited(fs->session);
		i++)
		nanosleep(&step, NULL);
	size_t left = atomic_load(&fs->open_quota->writers);
	if (left > 0 && !fuse_session_exited(fs->session))
		log_warning("%zu files that were open for writing are not closed yet", left);
}

static const struct set_watch set_watch = { .retain = on_retain,
	.begins = on_set_begins,
	.ended = on_set_ended,
	.drain = on_drain };

void events_start(struct fs *fs)
{
	service_subscribe(fs->service, on_event, fs);
	service_watch_sets(fs->service, &set_watch);
}

void events_stop(struct service *service)
{
	service_unsubscribe(service);
}
