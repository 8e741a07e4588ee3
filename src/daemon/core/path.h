/* SPDX-License-Identifier: MIT
 * Paths that a user gave. */
#ifndef DAEMON_CORE_PATH_H
#define DAEMON_CORE_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

/* An absolute path without links, also where its last part cannot be asked.  False, with
 * errno. */
bool path_absolute(const char *path, char ret[PATH_MAX]);

/* The same for a store that is there; one in a cluster keeps its name. */
bool path_of_store(const char *store, char ret[PATH_MAX]);
/* stat(2) of a store.  One in a cluster gets numbers made of its name, which tell it from others,
 * and the caller as its owner.  False, with errno. */
bool path_stat_store(const char *store, struct stat *ret);

#endif
