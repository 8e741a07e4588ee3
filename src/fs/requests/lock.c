/* SPDX-License-Identifier: MIT
 * flock, fcntl's locks, and what a close has to do with them. */
#include "fs/core/nid.h"
#include "fs/requests/kinds.h"
#include "fs/tree/locks.h"
#include "fs/tree/open_quota.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

/* One lock per row, whatever node the handle has. */
static enum err find_id(struct fs *fs, const struct handle *h, bool shows, uint64_t *ret)
{
	const struct kind_ops *kind = fs->kinds[h->kind];
	*ret = nid_id(h->nid);
	return kind->lock_id != NULL ? kind->lock_id(fs, h, shows, ret) : ERR_OK;
}

static void note_no_locks(void *call)
{
	struct fuse_call *c = call;
	(void)err_set(&c->detail, ERR_TOO_MANY_LOCKS,
		"As many ranges are locked, by this user or by all, as can be; unlock some.");
	note_refusal(c, ERR_TOO_MANY_LOCKS, "");
}

/* The other machines that serve the store do not know of locks.  True: the request was answered. */
static bool refuses_shared(struct fuse_call *c, bool unlocks)
{
	if (c->fs->shared)
		reply_err(c, unlocks ? ERR_OK : ERR_NO_LOCKS);
	return c->fs->shared;
}

/* False: it was answered. */
static bool prepare(struct fuse_call *c, struct handle *h, const struct fuse_file_info *fi,
	bool shows, struct lock_ask *ret)
{
	uid_t uid = fuse_req_ctx(c->req)->uid;
	*ret = (struct lock_ask){ .via = &h->locked,
		.owner = fi->lock_owner,
		.uid = uid,
		.refused = note_no_locks,
		.call = c,
		.first = open_quota_is_first(c->fs, uid) };
	enum err e = find_id(c->fs, h, shows, &ret->id);
	if (e != ERR_OK) {
		reply_err(c, e);
		return false;
	}
	reply_elsewhere(c);
	return true;
}

void op_flock(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi, int operation)
{
	struct fuse_call c = call_begin(req, OP_OTHER, nid, NULL);
	c.title = "lock";
	struct handle *h = handle_of(fi);
	struct lock_ask ask;
	(void)nid;
	if (refuses_shared(&c, (operation & LOCK_UN) != 0) ||
		!prepare(&c, h, fi, (operation & LOCK_UN) == 0, &ask))
		return;
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
	struct lock_ask ask;
	(void)nid;
	if (refuses(&c, range) || refuses_shared(&c, range->l_type == F_UNLCK) ||
		!prepare(&c, h, fi, range->l_type != F_UNLCK, &ask))
		return;
	locks_set(c.fs->locks, req, &ask, range, sleep != 0);
}

void op_getlk(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi, struct flock *range)
{
	struct fuse_call c = call_begin(req, OP_OTHER, nid, NULL);
	c.title = "lock";
	struct handle *h = handle_of(fi);
	struct lock_ask ask;
	(void)nid;
	if (refuses(&c, range) || refuses_shared(&c, false) || !prepare(&c, h, fi, false, &ask))
		return;
	locks_get(c.fs->locks, req, &ask, range);
}

/* ---- close ---- */

bool may_skip_flush(struct locks *locks, const struct fuse_file_info *fi)
{
	return (fi->flags & O_ACCMODE) == O_RDONLY && !locks_used(locks);
}

void unlock_closed(struct fs *fs, struct handle *h, uint64_t owner)
{
	struct lock_ask ask = { .via = &h->locked, .owner = owner };
	if (!locks_used(fs->locks) || !locks_any(fs->locks))
		return;
	(void)find_id(fs, h, false, &ask.id);
	locks_close(fs->locks, &ask);
}
