/* SPDX-License-Identifier: MIT
 * The process that serves a store: opens it, mounts it or not, answers REST requests and
 * commands, and closes it cleanly when the mount goes or a signal comes. */
#ifndef DAEMON_SERVE_SERVE_H
#define DAEMON_SERVE_SERVE_H

#include "cloud/endpoint.h"
#include "daemon/settings/mount_options.h"

struct serve {
	const char *command;       /* for messages */
	const char *store, *dir;   /* absolute; dir NULL: no mount, only the REST socket */
	const struct endpoint *at; /* the account elsewhere whose shadow the store is; NULL: none */
	struct mount_options *options;
	const struct args *args; /* of serve: whose connection strings are printed; else NULL */
	const struct command_table *table; /* the commands that it answers to */
	bool background;                   /* on_ready gives up the caller's terminal */
	int ready_fd;                      /* gets one byte when the mount answers; -1: none */
};

/* Returns the exit code when all is closed; says on stderr what went wrong. */
int serve(struct serve *s);

#endif
