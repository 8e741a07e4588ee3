/* SPDX-License-Identifier: MIT */
#include "daemon/core/command.h"

static int run(const struct args *args)
{
	int words;
	if (args->nwords == 0) {
		command_help_all(args->table, NULL, stdout);
		return EXIT_DONE;
	}
	char *argv[2] = { (char *)(uintptr_t)args->words[0],
		(char *)(uintptr_t)(args->nwords > 1 ? args->words[1] : "") };
	const struct command *c = command_find(args->table, args->nwords, argv, &words);
	if (c != NULL && words == args->nwords) {
		command_help(c, stdout);
		return EXIT_DONE;
	}
	if (args->nwords == 1 && command_group(args->table, args->words[0])) {
		command_help_all(args->table, args->words[0], stdout);
		return EXIT_DONE;
	}
	const char *meant = command_suggest(args->table, args->nwords, argv);
	fprintf(stderr, "rowfs help: there is no command '%s%s%s'; %s: rowfs help%s%s\n",
		args->words[0], args->nwords > 1 ? " " : "", args->nwords > 1 ? args->words[1] : "",
		meant != NULL ? "did you mean" : "see", meant != NULL ? " " : "",
		meant != NULL ? meant : "");
	return EXIT_USAGE;
}

const struct command command_help_ = {
	.name = "help",
	.topic = TOPIC_HELP,
	.synopsis = "[COMMAND]",
	.summary = "Explains a command",
	.max_words = 2,
	.local = run,
};
