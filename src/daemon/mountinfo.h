/* SPDX-License-Identifier: MIT
 * What is mounted where: /proc/self/mountinfo, and mount points by name without touching
 * them, since one whose server was killed answers ENOTCONN to everything. */
#ifndef DAEMON_MOUNTINFO_H
#define DAEMON_MOUNTINFO_H

#include <limits.h>
#include <stdbool.h>

#define MOUNT_TYPE "fuse.rowfs"

struct mount_entry {
	unsigned device; /* its minor number */
	char dir[PATH_MAX];
	char type[64];
	char source[PATH_MAX];
};

/* What is mounted at dir (absolute) on top of everything else there. */
bool mountinfo_find(const char *dir, struct mount_entry *ret);

/* Whether a store is mounted somewhere, by its path. */
bool mountinfo_shows(const char *store);

/* An absolute path without links, also where its last part cannot be asked.  False, with
 * errno. */
bool path_absolute(const char *path, char ret[PATH_MAX]);

/* Asks the server of the mount, past what the kernel remembers: 0 or an errno; ENOTCONN
 * where it was killed.  A server that was killed just when it told the kernel something can
 * stay half dead, and never answers: one of its threads waits for a lock that a client holds
 * who waits for the server.  With its store (NULL: not known) that is found out, and is
 * ENOTCONN too; a server that lives is waited for, and command says so. */
int mount_ask(const char *dir, const char *store, const char *command);

/* Unmounts; as fusermount3 where we are not root.  lazy: at once, whatever is open.
 * Returns 0 or an errno. */
int mount_detach(const char *dir, bool lazy);

#endif
