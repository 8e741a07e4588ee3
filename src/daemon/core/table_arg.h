/* SPDX-License-Identifier: MIT
 * ACCOUNT/TABLE, ACCOUNT/.queue/QUEUE and --format on the command line. */
#ifndef DAEMON_CORE_TABLE_ARG_H
#define DAEMON_CORE_TABLE_ARG_H

#include "daemon/core/command.h"
#include "service/transfer/transfer.h"

struct table_arg {
	struct span account, table;
	bool queue; /* table is a queue's name */
};

/* False after a message, which names the form: "ACCOUNT/TABLE". */
bool table_arg_parse(
	const char *text, const char *form, const char *command, struct table_arg *ret, FILE *err);
/* Does the same for ACCOUNT/TABLE, and takes ACCOUNT/.queue/QUEUE too. */
bool table_or_queue_arg_parse(
	const char *text, const char *command, struct table_arg *ret, FILE *err);
/* The format by --format, else by the suffix of a file's name (NULL: none), else NDJSON.
 * False after a message. */
bool table_arg_format(const struct args *args, const char *file, const char *command,
	enum transfer_format *ret, FILE *err);
/* The message where the account, the table or the queue is not there. */
int table_arg_fail(struct cmd_env *env, const char *command, const struct table_arg *t, enum err e,
	const struct err_detail *why);

#endif
