/* SPDX-License-Identifier: MIT
 * All commands.  Only main.c reads the table; it is handed down from there, since some commands
 * serve a store, and a served store runs commands. */
#include "daemon/commands/table.h"

/* Keep sorted by name. */
static const struct command *const commands[] = {
	&command_account_add,
	&command_account_keys,
	&command_account_list,
	&command_account_regenerate,
	&command_account_remove,
	&command_backup,
	&command_batch,
	&command_check,
	&command_compact,
	&command_complete,
	&command_copy,
	&command_dev,
	&command_export,
	&command_get,
	&command_help_,
	&command_import,
	&command_init,
	&command_ls,
	&command_merge,
	&command_mount,
	&command_mv,
	&command_put,
	&command_query,
	&command_rm,
	&command_salvage,
	&command_sas,
	&command_serve,
	&command_stat,
	&command_top,
	&command_umount,
	&command_version,
	&command_watch,
	&command_why,
};

const struct command_table command_table = { commands, ARRAY_LEN(commands) };
