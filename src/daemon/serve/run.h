/* SPDX-License-Identifier: MIT
 * Where a data command runs: in the process that serves the store, else here. */
#ifndef DAEMON_SERVE_RUN_H
#define DAEMON_SERVE_RUN_H

#include "daemon/core/command.h"

/* argv begins with the command's name, args is what was parsed of it. */
int run_data_command(const struct command *c, const struct args *args, int argc, char *const *argv);

#endif
