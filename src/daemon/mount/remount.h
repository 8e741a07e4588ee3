/* SPDX-License-Identifier: MIT
 * rowfs mount -o remount: makes a mount read-only or writable and changes flags such as noexec.
 * Two sides have to change.  The process that was called changes the kernel's side by mount(2),
 * since it has the caller's rights and namespace.  The serving process changes its REST socket and
 * its commands, which the kernel does not see. */
#ifndef DAEMON_MOUNT_REMOUNT_H
#define DAEMON_MOUNT_REMOUNT_H

#include "daemon/core/command.h"
#include "daemon/settings/mount_options.h"

/* The caller's side, of what was parsed of STORE DIR -o ...  Returns the exit code. */
int remount(const struct args *args, const struct mount_options *o);

/* The serving process' side: the `data` of the command mount. */
int remount_here(struct cmd_env *env, const struct args *args);

#endif
