/* SPDX-License-Identifier: MIT
 * Commands.  There are two kinds.  Local commands run in the process that was called.
 * Data commands run against an open store, in that process or in a thread of the process that
 * serves the store (daemon/control/control.h).  So data commands use no globals, no stdin, stdout
 * or stderr, no exit() and no path of their own: the caller opens the files. */
#ifndef DAEMON_CORE_COMMAND_H
#define DAEMON_CORE_COMMAND_H

#include "base/compiler.h"
#include "base/err.h"
#include "base/span.h"
#include "cloud/client.h"
#include "daemon/core/args.h"
#include "daemon/core/served.h"
#include "daemon/core/terminal.h"
#include "service/core/metrics.h"
#include "service/core/service.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2
};

struct cmd_input {
	const char *name; /* for messages */
	FILE *file;
	int fd; /* of file, to ask what it is */
};

struct cmd_env {
	struct service *service;     /* NULL: the rows are elsewhere */
	struct client *client;       /* of the account elsewhere; NULL: the rows are in the store */
	struct traffic traffic;      /* of the client */
	const struct served *served; /* by this process; NULL: it runs this command alone */
	const char *store;           /* as the user wrote it, for messages */
	struct cmd_input *inputs;
	size_t ninputs;
	/* Of a damaged store: the service is of what was salvaged of it.  NULL: as it is. */
	const struct store_salvage *salvaged;
	FILE *out, *err;
	int out_fd, err_fd;       /* of them, to ask what they are */
	struct terminal terminal; /* of the caller */
	/* Ctrl-C, or the caller is gone.  Asked between commits. */
	bool (*cancelled)(void *arg);
	void *cancel_arg;
};

enum command_flags {
	COMMAND_READS = 1,  /* data: changes nothing, a store that cannot be written will do */
	COMMAND_OUTPUT = 2, /* data: has --output FILE, which becomes env->out */
	/* data: the second word is a file to be made, 0600, which becomes the only input, open for
	 * reading and writing; --force: over one that exists */
	COMMAND_MAKES_FILE = 4,
	/* data: reading the store, and as it is: opened for reading only where it was closed */
	COMMAND_ONLY_READS = 8,
	/* data: with --skip-damaged it is given what can be salvaged of the store, where nobody
	 * serves it; the second word is ACCOUNT/TABLE, of which the losses are told */
	COMMAND_SALVAGES = 16,
	/* data: STORE may be the URL of an account elsewhere (daemon/core/elsewhere.h) */
	COMMAND_ELSEWHERE = 32,
	/* data: STORE may be the directory of a mount, or the URL of an account that is mounted */
	COMMAND_MOUNTED = 64,
};

/* The parts of the help. */
enum command_topic {
	TOPIC_START,
	TOPIC_ROWS,
	TOPIC_ACCOUNTS,
	TOPIC_CARE,
	TOPIC_HELP,
	TOPIC_COUNT_
};

struct command {
	const char *name; /* one word or two */
	enum command_topic topic;
	const char *synopsis;
	const char *summary; /* one line */
	const char *help;    /* more lines; may be NULL */
	const struct option_spec *options;
	int min_words, max_words; /* max < 0: any number */
	unsigned flags;
	int first_input; /* data: words from here on are files to read, "-" and none: stdin;
			    0: the command reads nothing */
	/* One of the two; local, where there are both: data is what it asks the process that
	 * serves the store for. */
	int (*local)(const struct args *args);
	int (*data)(struct cmd_env *env, const struct args *args); /* words[0] is the store */
	/* Checks that need no store; false after a message.  May be NULL. */
	bool (*check)(const struct args *args, FILE *err);
	/* data: asks the person at the terminal, before anything is done and only in the process that
	 * was called; false: nothing is to be done.  May be NULL. */
	bool (*ask)(const struct args *args);
};

/* The table of all commands, sorted by name (daemon/commands/table.h). */
#define COMMAND_TABLE_MAX 64
struct command_table {
	const struct command *const *list;
	size_t n; /* COMMAND_TABLE_MAX at most */
};

/* The command that argv begins with, and how many words its name has; NULL. */
const struct command *command_find(
	const struct command_table *t, int argc, char *const *argv, int *ret_words);
/* Data commands as operations of service/core/metrics.h. */
void command_name_operations(const struct command_table *t, struct service *s);
void command_count(const struct command_table *t, struct service *s, const struct command *c,
	uint64_t us, enum metrics_end end);
/* Returns the name that argv was perhaps meant to be; NULL. */
const char *command_suggest(const struct command_table *t, int argc, char *const *argv);
/* Whether commands begin with this word ("account"). */
bool command_group(const struct command_table *t, const char *word);
/* The page of all commands, or of those that begin with group. */
void command_help_all(const struct command_table *t, const char *group, FILE *out);
void command_help(const struct command *c, FILE *out);
/* Parses what follows the name and checks the number of words.  False after a message;
 * args_fini() either way. */
bool command_parse(
	const struct command *c, int argc, char *const *argv, struct args *ret, FILE *err);

/* Returns true if the opening upgraded the schema of the store; out says so, and where the copy is. */
bool command_upgraded(struct service *s, const char *store, char *out, size_t n);

/* "rowfs NAME: message", for a failure.  Returns EXIT_FAILED. */
int command_fail(FILE *err, const char *command, const char *fmt, ...) PRINTF_LIKE(3, 4);

extern const struct command command_account_add;
extern const struct command command_account_keys;
extern const struct command command_account_list;
extern const struct command command_account_regenerate;
extern const struct command command_account_remove;
extern const struct command command_backup;
extern const struct command command_batch;
extern const struct command command_check;
extern const struct command command_compact;
extern const struct command command_complete;
extern const struct command command_copy;
extern const struct command command_dev;
extern const struct command command_export;
extern const struct command command_get;
extern const struct command command_help_;
extern const struct command command_import;
extern const struct command command_init;
extern const struct command command_ls;
extern const struct command command_merge;
extern const struct command command_mount;
extern const struct command command_mv;
extern const struct command command_put;
extern const struct command command_query;
extern const struct command command_rm;
extern const struct command command_salvage;
extern const struct command command_sas;
extern const struct command command_serve;
extern const struct command command_stat;
extern const struct command command_top;
extern const struct command command_umount;
extern const struct command command_version;
extern const struct command command_watch;
extern const struct command command_why;

#endif
