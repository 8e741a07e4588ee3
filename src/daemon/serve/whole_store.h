/* SPDX-License-Identifier: MIT
 * A whole store into another one, of another engine too: item by item. */
#ifndef DAEMON_SERVE_WHOLE_STORE_H
#define DAEMON_SERVE_WHOLE_STORE_H

#include "daemon/core/command.h"

/* Makes the store `to` of the store `from`, which nobody may serve unless it is in a cluster; tells
 * progress and the result.  `to` does not exist, or is empty; after a failure it is as it was, but
 * for an empty store that was made in a cluster.  Returns an exit code. */
int whole_store_copy(const char *command, const char *from, const char *to, bool json);

/* Writes the store of env into the file of a descriptor, which is then a store of its own.  Gathers it in
 * a directory of TMPDIR (/var/tmp) first.  ERR_CANCELLED. */
enum err whole_store_to_file(
	struct cmd_env *env, struct store_view *v, int fd, struct err_detail *why);

#endif
