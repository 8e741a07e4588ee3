/* SPDX-License-Identifier: MIT
 * Runs a data command against an open service: the one way for both, the process that was
 * called and the thread of the process that serves the store. */
#ifndef DAEMON_CONTROL_EXECUTE_H
#define DAEMON_CONTROL_EXECUTE_H

#include "daemon/core/command.h"

/* Which descriptor is what; the inputs follow. */
enum {
	EXECUTE_OUT,
	EXECUTE_ERR,
	EXECUTE_INPUTS
};

/* table: what argv can name.  at: where the command works; of it service, client, served, salvaged,
 * cancelled and cancel_arg are read.  argv begins with the command's name.  Owns the descriptors from
 * now on, and overwrites them.  Returns the exit code. */
int execute(const struct command_table *table, const struct cmd_env *at, int argc,
	char *const *argv, int *fds, size_t nfds);

/* The words that name the inputs: from *ret_names on, *ret_n of them; 0: stdin alone. */
void execute_inputs(const struct command *c, const struct args *args, const char *const **ret_names,
	size_t *ret_n);

#endif
