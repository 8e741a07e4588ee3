/* SPDX-License-Identifier: MIT */
#include "base/crypto.h"
#include "daemon/core/account.h"

#include <string.h>

static int add(struct cmd_env *env, const struct args *args, const struct span *given)
{
	const char *name = args->words[1];
	struct account_keys keys;
	struct err_detail why = { 0 };
	enum err e =
		account_create(env->service, ORIGIN_COMMAND, span_of(name), given, &keys, &why);
	if (e != ERR_OK)
		return account_fail(env, "account add", name, e, &why);
	int code = account_print(env, args, name, &keys);
	explicit_bzero(&keys, sizeof(keys));
	return code;
}

static int run(struct cmd_env *env, const struct args *args)
{
	const char *text = args_value(args, "key");
	if (text == NULL)
		return add(env, args, NULL);

	struct buf bytes = BUF_INIT(1024);
	int code;
	if (base64_decode(span_of(text), &bytes) && buf_ok(&bytes)) {
		struct span given = buf_span(&bytes);
		code = add(env, args, &given);
	} else {
		code = command_fail(env->err, "account add",
			"--key is not valid base64: letters, digits, + and /, in groups of four, "
			"the last one filled up with =");
	}
	if (bytes.data != NULL)
		explicit_bzero(bytes.data, bytes.cap);
	buf_fini(&bytes);
	return code;
}

static const struct option_spec options[] = {
	{ "key", 0, "BASE64", "the first key (16 to 64 bytes); -: from standard input" },
	ACCOUNT_JSON_OPTION,
	ACCOUNT_URL_OPTION,
	{ NULL },
};

const struct command command_account_add = {
	.name = "account add",
	.topic = TOPIC_ACCOUNTS,
	.synopsis = "STORE NAME [--key=BASE64] [--url=URL] [--json]",
	.summary = "Adds an account, and prints its keys",
	.help = "NAME: 3 to 24 lower-case letters and digits.  The account gets two fresh keys of\n"
		"256 bits.  The last line is a connection string for the SDKs, with the endpoint of the\n"
		"process that serves the store; where there is none, with port 10002, where\n"
		"'rowfs serve' listens by default.\n",
	.options = options,
	.min_words = 2,
	.max_words = 2,
	.check = account_check,
	.data = run,
};
