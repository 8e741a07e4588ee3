/* SPDX-License-Identifier: MIT
 * Telling the kernel what became wrong in its caches.  A request handler must not call into the
 * kernel itself: the call waits for a directory's lock, whose holder may wait for the handler.  It
 * leaves the work here instead, and one thread sends it.  There is one exception, where the
 * handler's own reply comes after the notification and so wakes its client sooner: then up to two
 * threads of the request loop do both by themselves, and the others are left.  Threads of other
 * front ends (commands, REST) hold no lock of the kernel and call it inline, through the service's
 * event. */
#ifndef FS_CACHE_NOTIFY_H
#define FS_CACHE_NOTIFY_H

#include "base/span.h"
#include "fs/core/state.h"

#include <stdint.h>

struct fuse_req;

struct notifier;
enum err notifier_new(struct fs *fs, struct notifier **ret);
/* Sends what is queued, and stops the thread. */
void notifier_free(struct notifier *n);

/* Drops the name (positive or negative), then answers req with error 0.  Only for requests
 * during which the kernel holds no lock (FLUSH). */
void notify_name_then_reply(
	struct notifier *n, uint64_t dir_nid, struct span name, struct fuse_req *req);
/* At once: from threads that hold up no request. */
void notify_name_now(struct notifier *n, uint64_t dir_nid, struct span name);
/* Some time soon, in order; nobody waits for it. */
void notify_name_soon(struct notifier *n, uint64_t dir_nid, struct span name);
/* The same, but waits for it, no longer than ms: milliseconds.  For a request during which the
 * kernel holds the lock of an inode, since the holder of the directory's lock may wait for that
 * one. */
void notify_name_within(struct notifier *n, uint64_t dir_nid, struct span name, unsigned ms);
/* From now on, or no longer, this thread's changes of the store wait at most a second in all for
 * the kernel to drop their names, instead of any time.  This is for a request during which the
 * kernel holds the lock of a control file, while unlink(2) of that file holds the directory's lock.
 * It is also for every request whose thread or turn such a request may wait for. */
void notify_limit_wait(bool limited);
/* From now on this thread's changes of the store do not wait.  This is for a request during which the
 * kernel holds the lock of a directory whose names change (rename(2)). */
void notify_wait_for_none(void);
/* Whether that second was over since. */
bool notify_ran_out(void);
/* A name that a change set of the service made wrong; the thread that commits calls it for each
 * name, and notify_changes_end() after the last, which waits as long as notify_limit_wait()
 * says. */
void notify_change(struct notifier *n, uint64_t dir_nid, struct span name);
void notify_changes_end(struct notifier *n);
/* Success, behind all that is queued: for a request during which the kernel holds no lock. */
void notify_then_reply(struct notifier *n, struct fuse_req *req);
void notify_inode_soon(struct notifier *n, uint64_t nid);
/* At once, behind what is on its way of it to us: from threads that hold up no request. */
void notify_inode_now(struct notifier *n, uint64_t nid);
/* A directory's own attributes changed by something that the kernel did not do itself.  From
 * any thread, also a request handler: without pages to drop the call waits for no lock. */
void notify_attributes(struct notifier *n, uint64_t nid);
/* A row that lives got another node while the kernel keeps this one under its name (a rename
 * rendered its document anew).  A request that uses this one is sent to look the name up again.
 * From any thread. */
void notify_old_node(struct notifier *n, uint64_t nid);
/* Whether something waits to be sent or is being sent. */
bool notifier_busy(struct notifier *n);
/* From the first call on nothing is sent that may wait for a client, as the mount ends.  Whether no
 * thread does any more: those that do need the request loop. */
bool notifier_end(struct notifier *n);
/* Number of invalidations sent since the mount. */
uint64_t notifier_sent(struct notifier *n);

#endif
