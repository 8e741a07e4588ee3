/* SPDX-License-Identifier: MIT
 * A process beside the server of a mount that makes the server's death final.  A server that is
 * killed can stay as a zombie: one of its threads tells the kernel of a changed name and waits
 * there for a directory's lock.  The client that holds the lock waits for the server.  The parent
 * then never sees the server end, the store stays held, and clients hang.  The watcher outlives the
 * kill, has nothing of the mount open, and has the kernel end the connection. */
#ifndef DAEMON_MOUNT_WATCHER_H
#define DAEMON_MOUNT_WATCHER_H

#include <sys/types.h>

/* Starts it for a mount, whose connection_open() this is.  The calling thread is the one whose
 * death counts: it must live as long as the server, and must never wait for the kernel on behalf of
 * a client; the main thread is such a one.  Returns its process; -1 with errno where there is none,
 * and the mount then serves without. */
pid_t watcher_start(int connection);

/* Ends it and waits for its end; nothing for -1. */
void watcher_stop(pid_t watcher);

#endif
