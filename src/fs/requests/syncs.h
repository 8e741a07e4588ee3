/* SPDX-License-Identifier: MIT
 * fsync(2) of many at once.  A thread that comes while another syncs the store leaves its request
 * behind and is free for others.  The thread that syncs goes on for the requests that came
 * meanwhile, once for all of them.  So at most one thread of the request loop waits for the disk.
 * */
#ifndef FS_REQUESTS_SYNCS_H
#define FS_REQUESTS_SYNCS_H

#include "fs/requests/ops.h"

struct syncs;
struct syncs *syncs_new(void);
/* No request is left: the loop has ended.  NULL is fine. */
void syncs_free(struct syncs *s);

/* Replies when all that is committed now is on the disk: 0, or EIO and a reason.  May reply
 * asynchronously, from any thread of the loop. */
void syncs_reply(struct fuse_call *c);

#endif
