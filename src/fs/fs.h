/* SPDX-License-Identifier: MIT
 * The mount: a service shown as a filesystem through the FUSE kernel interface.  This is
 * the only header that other folders include; docs/architecture.md tells what is behind it. */
#ifndef FS_FS_H
#define FS_FS_H

#include "base/err.h"
#include "service/core/service.h"
#include "service/tree/trash.h"

#include <stdbool.h>
#include <sys/types.h>

struct fs;

struct fs_options {
	bool read_only;
	bool allow_other;
	bool list_controls; /* .rowfs is listed in the root */
	uid_t uid;          /* owner shown where none was set */
	gid_t gid;
	mode_t umask; /* taken from the default modes 0666 and 0777; usually 022 */
	struct trash_limits trash;
	uint64_t snapshot_log;        /* bytes by which the log on disk may grow for one view */
	uint64_t snapshot_lifetime_s; /* 0: no limit */
	const char *source;           /* shown in /proc/mounts: usually the store\'s path */
	const char *store;            /* the store\'s absolute path, for df */
	const char *generic; /* further options for the kernel or fusermount3, comma-separated
				 ("nosuid,nodev,noatime"); NULL */
	const char *version; /* of rowfs, for .rowfs/version */
	/* Called once when the kernel's first request is being answered; may be NULL. */
	void (*on_ready)(void *arg);
	void *arg;
};

/* Why a mount is refused that cannot start all of its threads. */
#define FS_NO_THREADS "there is no room for its threads"

/* Mounts at dir (absolute).  The service stays the caller's and must outlive the fs. */
enum err fs_new(struct service *service, const char *dir, const struct fs_options *options,
	struct fs **ret, struct err_detail *detail);
/* Serves until the filesystem is unmounted, by whomever. */
enum err fs_run(struct fs *fs);
/* Makes fs_run() return where an unmount does not, because the mount is still mounted elsewhere
 * (a mount of it, another namespace).  By another thread.  What is mounted at the directory stays:
 * it may be another mount by now.  Uses SIGUSR2. */
void fs_end(struct fs *fs);
/* Waits until no request is being worked on and nothing is left to tell the kernel, at most
 * timeout_ms.  For the moment before an unmount by force: what is not answered by then fails
 * in its caller. */
void fs_wait_idle(struct fs *fs, unsigned timeout_ms);
/* Unmounts if it is still mounted; every staged document that was not committed is in
 * .rowfs/rejected afterwards.  NULL is fine. */
void fs_free(struct fs *fs);

#endif
