/* SPDX-License-Identifier: MIT
 * What is mounted where: /proc/self/mountinfo, and mount points by name without touching
 * them, since one whose server was killed answers ENOTCONN to everything. */
#ifndef DAEMON_MOUNT_MOUNTINFO_H
#define DAEMON_MOUNT_MOUNTINFO_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MOUNT_TYPE "fuse.rowfs"

struct mount_entry {
	unsigned device; /* its minor number */
	uid_t user;      /* who mounted it; of FUSE */
	char dir[PATH_MAX];
	char type[64];
	char source[PATH_MAX];
};

/* What is mounted at dir (absolute) on top of everything else there. */
bool mountinfo_find(const char *dir, struct mount_entry *ret);

/* The mounts of a store (an absolute path) by number, from 0, as long as there are more: those
 * that are shown under its path, which fsname= can change. */
bool mountinfo_of_store(const char *store, size_t number, struct mount_entry *ret);

/* What is mounted with this device: the mount, and mounts of directories in it. */
bool mountinfo_of_device(unsigned device, struct mount_entry *ret);

/* Whether a process has something mounted with this device, in its own namespace. */
bool mountinfo_elsewhere(pid_t pid, unsigned device);

/* A process that has; 0: none that we may look at. */
pid_t mountinfo_process(unsigned device);

/* The process that holds a store (a path); 0: none, or it cannot be told.  Not for the process
 * that holds it itself: a descriptor of the file is closed. */
pid_t store_holder(const char *path);

/* Whether a store is mounted somewhere, by its path. */
bool mountinfo_shows(const char *store);

/* path_absolute() by a process beside this one, which can be stuck: a signal ends the command, and
 * after a few seconds without an answer it says what it waits for. */
bool path_absolute_patiently(const char *command, const char *path, char ret[PATH_MAX]);

/* Asks the server of the mount, past what the kernel remembers: 0 or an errno; ENOTCONN
 * where it was killed.  A server that was killed just when it told the kernel something can
 * stay half dead, and never answers: one of its threads waits for a lock that a client holds
 * who waits for the server.  With its store (NULL: not known) that is found out, and is
 * ENOTCONN too.  A server that lives and is slow is waited for, and command says so; where
 * command is NULL, for a few seconds: ETIMEDOUT. */
int mount_ask(const char *dir, const char *store, const char *command);

/* Unmounts; as fusermount3 where we are not root.  lazy: at once, whatever is open.
 * Returns 0 or an errno: EPERM for a mount of another user. */
int mount_detach(const char *dir, bool lazy);

/* Opens the file by which the connection of the mounts with this device is cut.  Call it while one
 * of them lives: later the number may be that of another mount.  The caller closes it.  Returns -1
 * with errno where there is none: no fusectl at /sys/fs/fuse/connections, and not root. */
int connection_open(unsigned device);
/* Has the kernel end the connection: each request that waits for an answer fails.  Does nothing for
 * -1, and after the end of the mounts. */
void connection_cut(int connection);

#endif
