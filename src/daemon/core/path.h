/* SPDX-License-Identifier: MIT
 * Paths that a user gave. */
#ifndef DAEMON_CORE_PATH_H
#define DAEMON_CORE_PATH_H

#include <limits.h>
#include <stdbool.h>

/* An absolute path without links, also where its last part cannot be asked.  False, with
 * errno. */
bool path_absolute(const char *path, char ret[PATH_MAX]);

#endif
