/* SPDX-License-Identifier: MIT
 * poll(2).  A file can be read and written at once, except one whose read waits (vfile_ops.poll).
 * Such a handle has one poller, which tells the kernel when to ask again. */
#include "fs/requests/virtual.h"

#include <poll.h>
#include <stdlib.h>

#define ALWAYS (POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM)

struct poller {
	struct waiter waiter;  /* first */
	struct handle *handle; /* one reference */
	struct fuse_pollhandle *ph;
};

static void dispose(struct poller *p)
{
	struct handle *h = p->handle;
	fuse_pollhandle_destroy(p->ph);
	free(p);
	handle_unref(h->file->fs, h);
}

static void on_ready(struct waiter *w)
{
	struct poller *p = (struct poller *)w;
	struct handle *h = p->handle;
	mutex_lock(&h->turns.lock);
	if (h->poller == p)
		h->poller = NULL;
	mutex_unlock(&h->turns.lock);
	(void)fuse_lowlevel_notify_poll(p->ph);
	dispose(p);
}

void poll_end(struct handle *h)
{
	mutex_lock(&h->turns.lock);
	struct poller *p = h->poller;
	h->poller = NULL;
	bool mine = p != NULL && waiters_cancel(h->file->fs->waiters, &p->waiter);
	mutex_unlock(&h->turns.lock);
	if (mine)
		dispose(p);
}

/* Takes ph over.  Returns false if the kernel shall ask again at once. */
static bool begin(struct handle *h, struct fuse_pollhandle *ph, const struct vwait *wait)
{
	struct poller *p = calloc(1, sizeof(*p));
	if (p == NULL) {
		fuse_pollhandle_destroy(ph);
		return false;
	}
	*p = (struct poller){ .handle = h, .ph = ph };
	p->waiter =
		(struct waiter){ .key = wait->key, .until_us = wait->until_us, .ready = on_ready };
	poll_end(h);
	handle_ref(h);
	mutex_lock(&h->turns.lock);
	bool waits = waiters_add(h->file->fs->waiters, &p->waiter, wait->seen);
	if (waits)
		h->poller = p;
	mutex_unlock(&h->turns.lock);
	if (!waits)
		dispose(p);
	return waits;
}

void op_poll(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi, struct fuse_pollhandle *ph)
{
	struct fuse_call c = call_begin(req, OP_OTHER, nid, NULL);
	struct handle *h = handle_of(fi);
	struct vwait wait = { 0 };
	bool waits = h != NULL && h->kind == KIND_VIRTUAL && h->file->ops->poll != NULL &&
		h->file->ops->poll(h->file, &wait) == ERR_OK && wait.waits;
	if (waits && ph != NULL)
		waits = begin(h, ph, &wait);
	else if (ph != NULL)
		fuse_pollhandle_destroy(ph);
	reply_elsewhere(&c);
	fuse_reply_poll(req, waits ? 0 : ALWAYS);
}
