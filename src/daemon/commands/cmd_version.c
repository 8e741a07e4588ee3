/* SPDX-License-Identifier: MIT */
#include "daemon/core/command.h"

static int run(const struct args *args)
{
	(void)args;
	puts("rowfs " ROWFS_VERSION);
	return EXIT_DONE;
}

const struct command command_version = {
	.name = "version",
	.topic = TOPIC_HELP,
	.synopsis = "",
	.summary = "Prints the version",
	.local = run,
};
