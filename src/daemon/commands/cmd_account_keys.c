/* SPDX-License-Identifier: MIT */
#include "daemon/core/account.h"

#include <string.h>

static int run(struct cmd_env *env, const struct args *args)
{
	struct account_keys keys;
	enum err e = account_keys_get(env->service, span_of(args->words[1]), &keys);
	if (e != ERR_OK)
		return account_fail(env, "account keys", args->words[1], e, NULL);
	int code = account_print(env, args, args->words[1], &keys);
	explicit_bzero(&keys, sizeof(keys));
	return code;
}

static const struct option_spec options[] = {
	ACCOUNT_JSON_OPTION,
	ACCOUNT_URL_OPTION,
	{ NULL },
};

const struct command command_account_keys = {
	.name = "account keys",
	.topic = TOPIC_ACCOUNTS,
	.synopsis = "STORE NAME [--url=URL] [--json]",
	.summary = "Prints the keys of an account",
	.help = "The last line is a connection string for the SDKs, as of 'rowfs account add'.\n",
	.options = options,
	.min_words = 2,
	.max_words = 2,
	.flags = COMMAND_READS,
	.check = account_check,
	.data = run,
};
