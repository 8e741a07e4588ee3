/* SPDX-License-Identifier: MIT
 * Commands on an account of the Table service elsewhere: the URL of the account stands in place of STORE.
 * The credential comes from a file, the environment or systemd (cloud/credentials.h). */
#ifndef DAEMON_CORE_ELSEWHERE_H
#define DAEMON_CORE_ELSEWHERE_H

#include "daemon/core/command.h"

/* The options of a command that takes such a URL; they fit option_spec. */
#define ELSEWHERE_OPTIONS \
	{ "ca-file", 0, "FILE", "of a URL: certificates to trust in place of the system's" }, \
		{ "connection-string", 0, "FILE", \
			"of a URL: the file with its connection string; '-': standard input" }, \
		{ "rps", 0, "N", "of a URL: at most N requests a second" }, \
	{ \
		"timeout", 0, "SECONDS", "of a URL: how long one response may take; by default 60" \
	}

/* Whether this is the URL of an account, and not a store. */
bool elsewhere_is(const char *store);
/* Refuses the options of a URL where STORE is a store.  False after a message to err. */
bool elsewhere_check(const struct command *c, const struct args *args, FILE *err);
/* Sets at->client for the URL in words[0] and the options.  Sends nothing.  at->cancelled must be set.
 * False after a message to err.  Free it with client_free(). */
bool elsewhere_open(
	const struct command *c, const struct args *args, struct cmd_env *at, FILE *err);
#endif
