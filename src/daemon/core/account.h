/* SPDX-License-Identifier: MIT
 * What the account commands share. */
#ifndef DAEMON_CORE_ACCOUNT_H
#define DAEMON_CORE_ACCOUNT_H

#include "daemon/core/command.h"
#include "service/core/accounts.h"

/* The option of the commands that print a connection string. */
#define ACCOUNT_URL_OPTION \
	{ \
		"url", 0, "URL", "the account's URL for clients; default: of the serving process" \
	}

/* Another one of the commands that print keys. */
#define ACCOUNT_JSON_OPTION \
	{ \
		"json", 0, NULL, "print an object: account, key1, key2, connection_string" \
	}

/* Checks that option; fits struct command. */
bool account_check(const struct args *args, FILE *err);
/* Both keys and a connection string for the SDKs, with the first one. */
int account_print(struct cmd_env *env, const struct args *args, const char *name,
	const struct account_keys *keys);
/* Fails with a message where there is no such account.  command: for messages. */
int account_must_exist(
	struct cmd_env *env, const struct args *args, const char *command, const char *name);
/* Prints the connection string alone. */
int account_print_connection(
	struct cmd_env *env, const struct args *args, const char *command, const char *name);
/* The message for a failure about this account, with what to do next. */
int account_fail(struct cmd_env *env, const char *command, const char *name, enum err e,
	const struct err_detail *why);

#endif
