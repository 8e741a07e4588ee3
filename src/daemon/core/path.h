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

/* The same for a store that is there.  One in a cluster keeps its name, and gets the path of the
 * configuration that CEPH_CONF names: so the name tells the cluster wherever it is read. */
bool path_of_store(const char *store, char ret[PATH_MAX]);
/* stat(2) of a store.  One in a cluster gets numbers that tell it from others in any cluster,
 * and the caller as its owner.  False, with errno. */
bool path_stat_store(const char *store, struct stat *ret);

#endif
