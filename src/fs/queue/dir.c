/* SPDX-License-Identifier: MIT */
#include "fs/queue/dir.h"

#include "base/clock.h"
#include "fs/core/dir_cursors.h"
#include "fs/queue/message.h"
#include "fs/tree/open_quota.h"

#include <stdlib.h>
#include <string.h>

/* Positions below STORE_ID_FIRST are not ids. */
#define AFTER_DOTDOT 2
#define AFTER_TAKEN 3
#define AFTER_HIDDEN 4

/* So many invisible messages a listing of the queue looks at, to tell whether .taken or .hidden is
 * empty.  If they do not tell, it lists both. */
#define LOOKS 256

struct queue_dir {
	struct vdir dir; /* first */
	uint64_t nid;
	struct dir_cursors cursors;
	size_t held; /* of them, as counted (open_quota.h) */
};

struct reply {
	struct queue_dir *d; /* NULL: only whether there is one */
	uint64_t nid;
	int64_t now;
	listing_fn fn;
	void *arg;
	bool any;
	unsigned looks; /* messages of the other place that may still be passed over; 0: all */
	enum err e;
};

/* Whether the item is listed in the directory.  Sets *ret_end behind the last one that can be. */
static bool belongs(struct reply *r, const struct item *it, bool *ret_end)
{
	struct message_key key;
	if (queue_node_of(r->nid) == QUEUE_NODE_ROOT)
		return it->kind == ITEM_QUEUE;
	if (!message_key_read(it->key, &key) || key.expires <= r->now)
		return false;
	enum queue_place place = queue_place_of(r->nid);
	*ret_end = place == QUEUE_PLACE_VISIBLE && key.visible > r->now;
	if (place == QUEUE_PLACE_VISIBLE)
		return !*ret_end;
	return (place == QUEUE_PLACE_TAKEN) == (key.taken > 0);
}

static bool send_item(void *arg, const struct item *it)
{
	struct reply *r = arg;
	struct message_key key;
	bool end = false;
	char name[LIMIT_QUEUE_NAME_MAX + 1];
	struct stat st = { .st_mode = S_IFREG };
	bool here = belongs(r, it, &end);
	if (!here && (r->looks == 0 || --r->looks > 0))
		return !end;
	r->any = true;
	if (r->d == NULL)
		return false;
	if (it->kind == ITEM_QUEUE) {
		size_t n = it->key.n < sizeof(name) ? it->key.n : sizeof(name) - 1;
		memcpy(name, it->key.p, n);
		name[n] = '\0';
		st.st_mode = S_IFDIR;
		st.st_ino = queue_nid(QUEUE_NODE_VISIBLE, it->id);
	} else {
		(void)message_key_read(it->key, &key);
		message_id_write(key.inserted, it->id, name);
		st.st_ino = queue_nid(
			QUEUE_NODE_VISIBLE_MESSAGE + (unsigned)queue_place_of(r->nid), it->id);
	}
	/* No node: the kernel looks a name up when it needs one. */
	if (!r->fn(r->arg, name, 0, &st, (int64_t)it->id))
		return false;
	r->e = dir_cursors_add(&r->d->cursors, it->id, CLASS_QUEUE, it->key);
	return r->e == ERR_OK;
}

/* Where the messages of the directory begin: visible ones come first, in the order of their
 * keys. */
static struct span first_key(const struct reply *r, char out[MESSAGE_KEY_CHARS + 1])
{
	const struct message_key key = {
		.visible = r->now, .inserted = TICKS_MAX, .expires = TICKS_MAX, .taken = UINT32_MAX
	};
	if (queue_node_of(r->nid) <= QUEUE_NODE_VISIBLE)
		return (struct span){ 0 };
	return message_key_write(&key, out);
}

static enum err list_after(struct store *store, struct reply *r, struct span after)
{
	char first[MESSAGE_KEY_CHARS + 1];
	if (after.p == NULL)
		after = first_key(r, first);
	enum err e = store_list(
		store, NULL, nid_id(r->nid), CLASS_QUEUE, after, false, WANT_KEYS, send_item, r);
	return e == ERR_OK ? r->e : e;
}

enum err queue_dir_any(struct fs *fs, uint64_t nid, unsigned looks, bool *ret)
{
	struct reply r = { .nid = nid, .now = service_now(fs->service), .looks = looks };
	enum err e = list_after(fs->store, &r, (struct span){ 0 });
	*ret = r.any;
	return e;
}

/* ---- one page ---- */

static bool send_fixed(
	struct reply *r, int64_t offset, int64_t after, const char *name, uint64_t nid)
{
	struct stat st = { .st_ino = nid, .st_mode = S_IFDIR };
	return offset >= after || r->fn(r->arg, name, 0, &st, after);
}

/* .taken and .hidden are listed while something is in them, so that rm -r and cp -r find it. */
static bool send_place(
	struct reply *r, int64_t offset, int64_t after, const char *name, enum queue_node which)
{
	uint64_t nid = queue_nid(which, nid_id(r->nid));
	bool any = false;
	if (offset >= after || queue_node_of(r->nid) != QUEUE_NODE_VISIBLE)
		return true;
	r->e = queue_dir_any(r->d->dir.fs, nid, LOOKS, &any);
	return r->e == ERR_OK && (!any || send_fixed(r, offset, after, name, nid));
}

static bool send_first(struct reply *r, int64_t offset)
{
	return send_fixed(r, offset, 1, ".", r->nid) &&
		send_fixed(r, offset, AFTER_DOTDOT, "..", r->nid) &&
		send_place(r, offset, AFTER_TAKEN, ".taken", QUEUE_NODE_TAKEN) &&
		send_place(r, offset, AFTER_HIDDEN, ".hidden", QUEUE_NODE_HIDDEN);
}

/* The key to go on behind: that of the entry, also if it has been moved or removed since. */
static enum err find_position(const struct reply *r, uint64_t id, struct item *hold)
{
	enum item_class class;
	struct item marked = { 0 };
	if (dir_cursors_find(&r->d->cursors, id, &class, &marked.key))
		return item_copy(hold, &marked);
	enum err e = store_get(r->d->dir.fs->store, NULL, id, WANT_ATTRS, hold);
	return e == ERR_NOT_FOUND ? ERR_INVALID_INPUT : e;
}

static enum err dir_read(
	struct vdir *dir, const struct caller *call, int64_t offset, listing_fn fn, void *arg)
{
	struct queue_dir *d = (struct queue_dir *)dir;
	struct fs *fs = dir->fs;
	struct reply r = {
		.d = d, .nid = d->nid, .now = service_now(fs->service), .fn = fn, .arg = arg
	};
	struct item hold = { 0 };
	enum err e = ERR_OK;
	bool goes_on = offset >= STORE_ID_FIRST;
	if (!goes_on && !send_first(&r, offset))
		return r.e;
	if (goes_on)
		e = find_position(&r, (uint64_t)offset, &hold);
	dir_cursors_next_reply(&d->cursors, goes_on);
	d->cursors.fixed = !open_quota_may_grow(fs, call->uid);
	if (e == ERR_OK)
		e = list_after(fs->store, &r, hold.key);
	open_quota_set(fs->open_quota, &d->held, dir_cursors_holds(&d->cursors));
	item_fini(&hold);
	return e;
}

static void dir_free(struct vdir *dir)
{
	struct queue_dir *d = (struct queue_dir *)dir;
	open_quota_set(dir->fs->open_quota, &d->held, 0);
	dir_cursors_fini(&d->cursors);
	free(d);
}

static const struct vdir_ops dir_ops = {
	.pool = VPOOL_SCAN,
	.read = dir_read,
	.free = dir_free,
};

enum err queue_dir_open(struct fs *fs, uint64_t nid, struct vdir **ret)
{
	struct item it = { 0 };
	if (queue_node_of(nid) > QUEUE_NODE_HIDDEN)
		return ERR_NOT_A_DIRECTORY;
	enum err e = store_get(fs->store, NULL, nid_id(nid), WANT_ATTRS, &it);
	item_fini(&it);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_GONE : e;
	struct queue_dir *d = calloc(1, sizeof(*d));
	if (d == NULL)
		return ERR_NO_MEMORY;
	d->dir = (struct vdir){ .ops = &dir_ops, .fs = fs };
	d->nid = nid;
	*ret = &d->dir;
	return ERR_OK;
}
