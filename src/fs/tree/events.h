/* SPDX-License-Identifier: MIT
 * What the mount does when the service commits: it keeps the old content for readers who still
 * have it open, and tells the kernel
 * (fs/cache/notify.h) which names and attributes are out of date.  The mount's own changes need
 * little of that: the kernel made them.  Service events come from any thread. */
#ifndef FS_TREE_EVENTS_H
#define FS_TREE_EVENTS_H

#include "fs/core/state.h"

/* Subscribes to the service.  The notifier, the contents, the handles and the locks are there. */
void events_start(struct fs *fs);
/* No event comes after it.  Before any of those goes. */
void events_stop(struct service *service);

#endif
