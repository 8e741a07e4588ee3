/* SPDX-License-Identifier: MIT */
#include "daemon/core/command.h"
#include "store/engines.h"

#include <sys/stat.h>

static int run(const struct args *args)
{
	struct err_detail why = { 0 };
	const char *path = args->words[0];
	enum err e = store_create(path, &why);
	struct stat st;
	/* Else it is a log that was left there. */
	if (e == ERR_NAME_EXISTS && (store_is_remote(path) || lstat(path, &st) == 0))
		return command_fail(stderr, "init",
			"'%s' exists already, and is left as it is; take another name", path);
	if (e != ERR_OK)
		return command_fail(
			stderr, "init", "cannot make '%s': %s", path, err_message(e, &why));
	return EXIT_DONE;
}

const struct command command_init = {
	.name = "init",
	.topic = TOPIC_START,
	.synopsis = "STORE",
	.summary = "Makes an empty store",
	.help = "The file gets mode 0600, for it holds the keys of the accounts.  Whatever is\n"
		"there already is never touched.\n",
	.min_words = 1,
	.max_words = 1,
	.local = run,
};
