/* SPDX-License-Identifier: MIT
 * Stores by what a user sees of them: the directory of a mount, or the URL of an account that is mounted. */
#ifndef DAEMON_SERVE_MOUNTED_H
#define DAEMON_SERVE_MOUNTED_H

#include <limits.h>
#include <stdbool.h>

/* Finds the store that a mount shows.  given: the directory where it is mounted, or the URL of an account
 * elsewhere, whose store is the shadow; any other path is copied.  May wait for a mount that does not
 * answer.  False after a message of the command to stderr. */
bool mounted_store(const char *command, const char *given, char ret[PATH_MAX]);
/* Returns the path of the shadow of an account elsewhere; false after a message. */
bool mounted_shadow(const char *command, const char *url, char ret[PATH_MAX]);

#endif
