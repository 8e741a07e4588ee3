/* SPDX-License-Identifier: MIT
 * What keeps the keys of accounts in this process: no core dump, no reading by others of the
 * same user, no key in the list of processes.  The store's mode, 0600, is the boundary; this
 * keeps keys from where they outlive the process. */
#ifndef DAEMON_CORE_SECRET_H
#define DAEMON_CORE_SECRET_H

#include <stdbool.h>

/* No core dump of this process is written, and only root can look into it (gdb, gcore). */
void secret_no_core(void);
/* Moves the key of `account add --key` from where ps(1) sees it to memory of our own.  "-" is
 * replaced by a line of standard input.  False, and it is said on standard error: there is none. */
bool secret_hide_key(int argc, char **argv);

#endif
