/* SPDX-License-Identifier: MIT
 * What the account commands share. */
#ifndef DAEMON_ACCOUNT_H
#define DAEMON_ACCOUNT_H

#include "daemon/command.h"
#include "service/accounts.h"

/* Both keys and a connection string for the SDKs, with the first one. */
int account_print(struct cmd_env *env, const char *name, const struct account_keys *keys);
/* The message for a failure about this account, with what to do next. */
int account_fail(struct cmd_env *env, const char *command, const char *name, enum err e,
	const struct err_detail *why);

#endif
