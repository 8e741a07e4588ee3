/* SPDX-License-Identifier: MIT
 * Ctrl-C and SIGTERM in a process that runs a command: a flag, asked between commits. */
#ifndef DAEMON_SIGNALS_H
#define DAEMON_SIGNALS_H

#include <stdbool.h>

/* From now on the first SIGINT, SIGTERM or SIGHUP sets the flag, a second one kills. */
void signals_catch(void);
/* Whether it is set; the argument makes it fit struct cmd_env. */
bool signals_cancelled(void *unused);

#endif
