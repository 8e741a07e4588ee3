/* SPDX-License-Identifier: MIT
 * Command line options without globals: commands run in threads of the serving process,
 * where getopt() cannot be used.  GNU habits: options and words in any order, "--" ends
 * the options, --name=value or --name value, -xVALUE or -x VALUE, flags in one cluster. */
#ifndef DAEMON_CORE_ARGS_H
#define DAEMON_CORE_ARGS_H

#include <stdbool.h>
#include <stdio.h>

struct option_spec {
	const char *name;  /* long name; NULL ends the list */
	char letter;       /* 0: none */
	const char *value; /* what the value is called in the help; NULL: a flag */
	const char *help;
};

struct given_option {
	const struct option_spec *spec;
	const char *value;
};

struct command_table;

struct args {
	struct given_option *given; /* in their order */
	int ngiven;
	const char **words; /* everything else; borrowed from argv */
	int nwords;
	bool help; /* --help or -h */
	/* Set by the caller that runs a local command: `help` shows it, `mount` and `serve` answer to
	 * it. */
	const struct command_table *table;
};

/* argv without the command's name.  False after a message to err.  args_fini() either way. */
bool args_parse(struct args *a, const char *command, const struct option_spec *specs, int argc,
	char *const *argv, FILE *err);
void args_fini(struct args *a);

/* The value of the option given last; "" for a flag; NULL if it was not given. */
const char *args_value(const struct args *a, const char *name);
bool args_has(const struct args *a, const char *name);

#endif
