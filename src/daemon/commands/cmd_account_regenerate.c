/* SPDX-License-Identifier: MIT */
#include "daemon/core/account.h"

#include <string.h>

static bool check(const struct args *args, FILE *err)
{
	const char *which = args_value(args, "which");
	if (which == NULL || strcmp(which, "1") == 0 || strcmp(which, "2") == 0)
		return account_check(args, err);
	fprintf(err, "rowfs account regenerate: --which is 1 or 2, not '%s'\n", which);
	return false;
}

static int run(struct cmd_env *env, const struct args *args)
{
	struct account_keys keys;
	struct err_detail why = { 0 };
	const char *which = args_value(args, "which");
	enum err e = account_key_regenerate(env->service, ORIGIN_COMMAND, span_of(args->words[1]),
		which != NULL && which[0] == '2', &keys, &why);
	if (e != ERR_OK)
		return account_fail(env, "account regenerate", args->words[1], e, &why);
	int code = account_print(env, args, args->words[1], &keys);
	explicit_bzero(&keys, sizeof(keys));
	return code;
}

static const struct option_spec options[] = {
	{ "which", 0, "1|2", "which of the two keys (1)" },
	ACCOUNT_JSON_OPTION,
	ACCOUNT_URL_OPTION,
	{ NULL },
};

const struct command command_account_regenerate = {
	.name = "account regenerate",
	.topic = TOPIC_ACCOUNTS,
	.synopsis = "STORE NAME [--which=1|2] [--url=URL] [--json]",
	.summary = "Replaces a key of an account by a fresh one",
	.help = "What was signed with the old key is refused from then on.  To change keys without\n"
		"a gap: give everyone key 2, regenerate key 1, give everyone key 1.\n",
	.options = options,
	.min_words = 2,
	.max_words = 2,
	.check = check,
	.data = run,
};
