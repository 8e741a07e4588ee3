/* SPDX-License-Identifier: MIT
 * What a killed server leaves: mount points that answer ENOTCONN.  If one of its threads is caught
 * in the kernel, the mount points never answer and the store is still held.  Both end when the
 * connection is cut and the mount point is freed. */
#ifndef DAEMON_MOUNT_RECOVER_H
#define DAEMON_MOUNT_RECOVER_H

#include "daemon/mount/mountinfo.h"

/* One process at a time finds out whether the mount at dir is dead and acts on it.  So no process
 * takes away what another one has mounted there since.  Returns a lock, or -1 where nothing can be
 * locked: the caller goes on without.  Waits a few seconds at most. */
int mount_lock(const char *dir);
void mount_unlock(int lock);

enum recovery {
	RECOVERY_NOTHING, /* no mount of rowfs is there */
	RECOVERY_ALIVE,   /* *ret is the mount that answers */
	RECOVERY_DONE,    /* it was dead and is unmounted; a note is on stderr */
	RECOVERY_FAILED,  /* a message is on stderr */
};

/* Looks at what is mounted at dir (absolute).  store: of which store it may be, where the mount
 * does not tell; may be NULL.  command: for messages.  A server that does not answer, but lives
 * (it is stopped, or busy), is alive; patient: only once it has answered. */
enum recovery recover_dir(const char *dir, const char *store, const char *command, bool patient,
	struct mount_entry *ret);

/* Unmounts every dead mount of the store (an absolute path), wherever it is, also those that a
 * mount elsewhere shows again. */
void recover_store(const char *store, const char *command);

#endif
