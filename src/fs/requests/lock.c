/* SPDX-License-Identifier: MIT
 * flock, fcntl's locks, and what a close has to do with them. */
#include "fs/core/nid.h"
#include "fs/requests/ops.h"
#include "fs/tree/held.h"
#include "fs/tree/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

/* One lock per row, whatever node the handle has. */
struct subject {
	struct fs *fs;
	uint64_t nid;
	uint64_t id;     /* 0: none is known */
	uint64_t dir_id; /* of the name, where it was an empty file; else 0 */
	char name[COMPONENT_MAX];
};

static void name_subject(struct subject *l, uint64_t dir_id, const char *name)
{
	l->dir_id = dir_id;
	(void)snprintf(l->name, sizeof(l->name), "%s", name);
}

/* shows: a new name that nobody has seen gets a number by which others will ask. */
static enum err find_subject(struct subject *l, const struct handle *h, bool shows)
{
	struct stage *s = h->kind == HANDLE_STAGE ? h->stage : NULL;
	char name[COMPONENT_MAX];
	l->id = h->kind == HANDLE_VIRTUAL ? h->nid : nid_id(h->nid);
	if (h->kind == HANDLE_ROW && h->content->item.kind == ITEM_FILE) {
		(void)item_component(&h->content->item, name);
		name_subject(l, h->content->item.parent, name);
	}
	if (s == NULL)
		return ERR_OK;
	enum err e = shows ? stage_settle(l->fs, s) : ERR_OK;
	struct item held = stage_item(s);
	l->id = held.id;
	if (held.kind != ITEM_ROW)
		name_subject(l, s->dir_id, s->name);
	return e;
}

/* The row that took the place of the empty file. */
static uint64_t row_in_place(struct fs *fs, uint64_t dir_id, const char *name)
{
	uint64_t id = 0;
	struct resolved_name t = { 0 };
	struct item row = { 0 };
	if (name_resolve(fs, nid_make(dir_id, 0), name, &t, NULL) == ERR_OK && t.row_name &&
		name_item(fs, &t, WANT_ATTRS, &row) == ERR_OK && row.kind == ITEM_ROW)
		id = row.id;
	item_fini(&row);
	resolved_name_fini(&t);
	return id;
}

/* With the lock of locks.c (lock_id_fn): what was an empty file a moment ago may be a row. */
static struct lock_id id_now(const void *arg)
{
	const struct subject *l = arg;
	struct item it = { 0 };
	uint64_t row = 0, known = l->id != 0 ? l->id : l->nid;
	if (l->dir_id == 0)
		return (struct lock_id){ known, known };
	if (l->id == 0 || store_get(l->fs->store, NULL, l->id, WANT_ATTRS, &it) == ERR_NOT_FOUND)
		row = row_in_place(l->fs, l->dir_id, l->name);
	item_fini(&it);
	return (struct lock_id){ row != 0 ? row : known, known };
}

static void note_no_locks(void *call)
{
	struct fuse_call *c = call;
	(void)err_set(&c->detail, ERR_TOO_MANY_LOCKS,
		"As many ranges are locked, by this user or by all, as can be; unlock some.");
	note_refusal(c, ERR_TOO_MANY_LOCKS, "");
}

static struct lock_ask ask_of(struct fuse_call *c, const struct subject *l, struct handle *h,
	const struct fuse_file_info *fi)
{
	uid_t uid = fuse_req_ctx(c->req)->uid;
	return (struct lock_ask){ .id = id_now,
		.arg = l,
		.via = &h->locked,
		.owner = fi->lock_owner,
		.uid = uid,
		.refused = note_no_locks,
		.call = c,
		.first = held_is_first(c->fs, uid) };
}

/* False: it was answered. */
static bool prepare(struct fuse_call *c, struct subject *l, const struct handle *h, bool shows)
{
	*l = (struct subject){ .fs = c->fs, .nid = h->nid };
	enum err e = find_subject(l, h, shows);
	if (e != ERR_OK) {
		reply_err(c, e);
		return false;
	}
	reply_elsewhere(c);
	service_wait_kept(c->fs->service); /* whose lock becomes the row's: see on_keep() */
	return true;
}

void op_flock(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi, int operation)
{
	struct fuse_call c = call_begin(req, OP_OTHER, nid, NULL);
	c.title = "lock";
	struct handle *h = handle_of(fi);
	struct subject l;
	(void)nid;
	if (!prepare(&c, &l, h, (operation & LOCK_UN) == 0))
		return;
	struct lock_ask ask = ask_of(&c, &l, h, fi);
	locks_flock(c.fs->locks, req, &ask, operation);
}

/* Refuses ranges that no kernel asks for.  True: the request was answered. */
static bool refuses(struct fuse_call *c, const struct flock *range)
{
	bool refused = range->l_start < 0 || range->l_len < 0;
	if (refused)
		reply_err(c,
			err_set(&c->detail, ERR_INVALID_INPUT,
				"A lock begins at a byte and ends behind it."));
	return refused;
}

void op_setlk(
	fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi, struct flock *range, int sleep)
{
	struct fuse_call c = call_begin(req, OP_OTHER, nid, NULL);
	c.title = "lock";
	struct handle *h = handle_of(fi);
	struct subject l;
	(void)nid;
	if (refuses(&c, range) || !prepare(&c, &l, h, range->l_type != F_UNLCK))
		return;
	struct lock_ask ask = ask_of(&c, &l, h, fi);
	locks_set(c.fs->locks, req, &ask, range, sleep != 0);
}

void op_getlk(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi, struct flock *range)
{
	struct fuse_call c = call_begin(req, OP_OTHER, nid, NULL);
	c.title = "lock";
	struct handle *h = handle_of(fi);
	struct subject l;
	(void)nid;
	if (refuses(&c, range) || !prepare(&c, &l, h, false))
		return;
	struct lock_ask ask = ask_of(&c, &l, h, fi);
	locks_get(c.fs->locks, req, &ask, range);
}

/* ---- close ---- */

bool may_skip_flush(const struct fs *fs, const struct fuse_file_info *fi)
{
	return (fi->flags & O_ACCMODE) == O_RDONLY && !locks_used(fs->locks);
}

void unlock_closed(struct fs *fs, struct handle *h, uint64_t owner)
{
	struct subject l = { .fs = fs, .nid = h->nid };
	if (!locks_used(fs->locks) || !locks_any(fs->locks))
		return;
	(void)find_subject(&l, h, false);
	service_wait_kept(fs->service);
	struct lock_ask ask = { .id = id_now, .arg = &l, .via = &h->locked, .owner = owner };
	locks_close(fs->locks, &ask);
}
