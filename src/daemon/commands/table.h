/* SPDX-License-Identifier: MIT
 * The table of all commands.  A new command is a row in table.c. */
#ifndef DAEMON_COMMANDS_TABLE_H
#define DAEMON_COMMANDS_TABLE_H

#include "daemon/core/command.h"

extern const struct command_table command_table;

#endif
