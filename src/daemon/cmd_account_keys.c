/* SPDX-License-Identifier: MIT */
#include "daemon/account.h"

#include <string.h>

static int run(struct cmd_env *env, const struct args *args)
{
	struct account_keys keys;
	enum err e = account_keys_get(env->service, span_of(args->words[1]), &keys);
	if (e != ERR_OK)
		return account_fail(env, "account keys", args->words[1], e, NULL);
	int code = account_print(env, args->words[1], &keys);
	explicit_bzero(&keys, sizeof(keys));
	return code;
}

const struct command command_account_keys = {
	.name = "account keys",
	.synopsis = "STORE NAME",
	.summary = "Prints the keys of an account",
	.min_words = 2,
	.max_words = 2,
	.flags = COMMAND_READS,
	.data = run,
};
