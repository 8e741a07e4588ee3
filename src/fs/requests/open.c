/* SPDX-License-Identifier: MIT
 * open, and the close that comes last: what they do is up to the node's kind (fs/requests/kinds.h). */
#include "fs/requests/kinds.h"
#include "fs/tree/locks.h"
#include "fs/write/speculation.h"

#include <errno.h>
#include <fcntl.h>

void op_open(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_OPEN, nid, NULL);
	struct node n;
	if (!may_open(&c) || !node_find(&c, nid, open_what(fi), &n))
		return;
	c.fs->kinds[n.kind]->open(&c, &n, fi);
	node_fini(c.fs, &n);
}

void op_release(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_RELEASE, nid, NULL);
	struct handle *h = handle_of(fi);
	locks_release(c.fs->locks, &h->locked);
	c.fs->kinds[h->kind]->release(&c, h);
}

/* ---- for the kinds ---- */

bool open_writes(const struct fuse_file_info *fi)
{
	return (fi->flags & O_ACCMODE) != O_RDONLY || (fi->flags & O_TRUNC) != 0;
}

enum retry_what open_what(const struct fuse_file_info *fi)
{
	return open_writes(fi) ? RETRY_WRITE : RETRY_READ;
}

void open_ends_speculation(const struct fuse_call *c, const struct fuse_file_info *fi)
{
	if (!open_writes(fi))
		speculation_stop(c->fs->speculation, call_thread(c));
}

struct handle *open_handle(
	const struct fuse_call *c, enum kind kind, uint64_t nid, struct fuse_file_info *fi)
{
	struct handle *h = handle_new(c->fs, kind, nid, call_thread(c));
	if (h == NULL)
		return NULL;
	if ((fi->flags & O_ACCMODE) != O_RDONLY)
		handle_writes(c->fs->open_quota, h);
	fi->fh = (uintptr_t)h;
	return h;
}

void close_handle(struct fs *fs, struct handle *h)
{
	if (fs->kinds[h->kind]->close != NULL)
		fs->kinds[h->kind]->close(fs, h);
	handle_unref(fs, h);
}

void release_now(struct fuse_call *c, struct handle *h)
{
	close_handle(c->fs, h);
	reply_err(c, ERR_OK);
}

void reply_open(struct fuse_call *c, struct handle *h, struct fuse_file_info *fi)
{
	reply_elsewhere(c);
	if (fuse_reply_open(c->req, fi) == -ENOENT)
		close_handle(c->fs, h);
}

void refuse_throttled(struct fuse_call *c, enum err e)
{
	retries_clear(c->fs, c->fs->retries, call_thread(c));
	reply_err(c, e);
}
