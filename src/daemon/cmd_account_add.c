/* SPDX-License-Identifier: MIT */
#include "base/crypto.h"
#include "daemon/account.h"

#include <string.h>

static int add(struct cmd_env *env, const char *name, const struct span *given)
{
	struct account_keys keys;
	struct err_detail why = { 0 };
	enum err e =
		account_create(env->service, ORIGIN_COMMAND, span_of(name), given, &keys, &why);
	if (e != ERR_OK)
		return account_fail(env, "account add", name, e, &why);
	int code = account_print(env, name, &keys);
	explicit_bzero(&keys, sizeof(keys));
	return code;
}

static int run(struct cmd_env *env, const struct args *args)
{
	const char *text = args_value(args, "key");
	if (text == NULL)
		return add(env, args->words[1], NULL);

	struct buf bytes = BUF_INIT(1024);
	int code;
	if (base64_decode(span_of(text), &bytes) && buf_ok(&bytes)) {
		struct span given = buf_span(&bytes);
		code = add(env, args->words[1], &given);
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
	{ NULL },
};

const struct command command_account_add = {
	.name = "account add",
	.synopsis = "STORE NAME [--key=BASE64]",
	.summary = "Adds an account, and prints its keys",
	.help = "NAME: 3 to 24 lower-case letters and digits.  The account gets two fresh keys of\n"
		"256 bits.  The last line is a connection string for the SDKs; it names port 10002,\n"
		"where 'rowfs serve' listens by default.\n",
	.options = options,
	.min_words = 2,
	.max_words = 2,
	.data = run,
};
