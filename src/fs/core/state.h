/* SPDX-License-Identifier: MIT
 * What the files of the mount share: one struct fs per mount. */
#ifndef FS_CORE_STATE_H
#define FS_CORE_STATE_H

#include "fs/core/nid.h"
#include "fs/core/opstat.h"
#include "fs/fs.h"
#include "service/core/service.h"
#include "store/store.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>

struct ahead;
struct batch_results;
struct contents;
struct stages;
struct retries;
struct reasons;
struct unsaved;
struct notifier;
struct idset;
struct kind_ops;
struct speculation;
struct handles;
struct open_quota;
struct locks;
struct trash;
struct query_nodes;
struct stream_sizes;
struct told;
struct queue_names;
struct blob_room;
struct fuse_session;
struct vnode_ops;
struct waiters;
struct workers;

/* For how long the kernel may keep names and attributes.  Where all writers of the store are in this
 * process, an invalidation follows every change, so it is as long as it likes.  No invalidation comes
 * from another machine: it asks anew each time (keep_seconds()). */
#define CACHE_SECONDS 3600.0

/* Where a method runs.  Scan: reads of any length.  Change: commits, also such whose
 * invalidations wait for the kernel; never in the other two, nor may one of those wait for it. */
enum vpool {
	VPOOL_INLINE, /* in the request loop: a few reads of the store at most */
	VPOOL_SCAN,
	VPOOL_CHANGE,
	VPOOL_COUNT_
};

struct fs {
	struct service *service;
	struct store *store; /* the service's; for reading */
	struct fs_options options;
	char *source, *store_path, *dir, *version; /* owned copies behind options */
	struct fuse_session *session;
	sem_t ended;                     /* posted by fs_end() */
	struct contents *contents;       /* recent row contents */
	struct ahead *ahead;             /* and those that come next */
	struct stages *stages;           /* writers' private documents */
	struct retries *retries;         /* threads that were told ESTALE and will come back */
	struct speculation *speculation; /* threads that replace one row after the other */
	struct reasons *reasons;         /* why something was refused */
	struct unsaved *unsaved;         /* refused bytes that the store could not take */
	struct handles *handles;         /* all that is open */
	struct open_quota *open_quota;   /* how much that is, and may be */
	struct locks *locks;             /* flock(2), fcntl(2) */
	struct notifier *notifier;
	struct syncs *syncs;     /* fsync(2) */
	struct waiters *waiters; /* requests that wait for a message */
	struct trash *trash;
	struct query_nodes *query_nodes;
	struct stream_sizes *stream_sizes;
	struct told *told;
	struct queue_names *queue_names;     /* names that users chose for messages */
	struct blob_room *blobs;             /* nodes and directories of blobs */
	atomic_uint_fast64_t changes;        /* change sets committed since the mount */
	atomic_uint_fast64_t moments;        /* given to nodes (fs/core/nid.h) */
	struct batch_results *batch_results; /* the last of each .batch */
	struct idset *open_files;            /* ordinary files with open handles */
	struct idset *leaving;               /* ordinary files that are being removed */
	struct idset *resizing;              /* ordinary files: the size before, and 1 (attr.h) */
	struct idset *open_dirs; /* directories whose listing may be giving nodes to names */
	struct idset *seen;      /* directories that the kernel has looked into */
	struct idset *in_sets;   /* partitions of which a change set is being applied */
	struct idset *
		removals; /* how often a directory was removed that is there again (fs/core/virtual.h) */
	int64_t started;        /* ticks */
	atomic_int page_givers; /* requests inside pages_give() */
	bool shared; /* other machines may change the store too: nothing changeable is kept */
	bool mounted;
	bool given_up;                       /* the mount point may be another mount's */
	atomic_int in_flight;                /* requests that are being worked on */
	atomic_uint_fast64_t overdue;        /* fs/session/loop.h */
	struct workers *pools[VPOOL_COUNT_]; /* none for inline */
	/* What the virtual nodes of each kind do (fs/core/virtual.h); NULL: of none. */
	const struct vnode_ops *(*vnode_ops[NID_KIND_COUNT_])(uint64_t nid);
	/* The operations of each kind of node and handle, by enum kind (fs/tree/handle.h). */
	const struct kind_ops *const *kinds;
	atomic_bool stopping; /* what takes long shall end */
};

static inline double keep_seconds(const struct fs *fs)
{
	return fs->shared ? 0 : CACHE_SECONDS;
}

#endif
