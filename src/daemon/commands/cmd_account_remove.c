/* SPDX-License-Identifier: MIT */
#include "daemon/core/account.h"

static int run(struct cmd_env *env, const struct args *args)
{
	struct err_detail why = { 0 };
	const char *name = args->words[1];
	enum err e = account_remove(
		env->service, ORIGIN_COMMAND, span_of(name), args_has(args, "recursive"), &why);
	if (e == ERR_NOT_EMPTY)
		return command_fail(env->err, "account remove",
			"account '%s' holds tables; to remove them too: "
			"rowfs account remove --recursive %s %s",
			name, env->store, name);
	if (e != ERR_OK)
		return account_fail(env, "account remove", name, e, &why);
	return EXIT_DONE;
}

static const struct option_spec options[] = {
	{ "recursive", 'r', NULL, "with all its tables and rows; asks nothing" },
	{ NULL },
};

const struct command command_account_remove = {
	.name = "account remove",
	.topic = TOPIC_ACCOUNTS,
	.synopsis = "STORE NAME [--recursive]",
	.summary = "Removes an account",
	.options = options,
	.min_words = 2,
	.max_words = 2,
	.data = run,
};
