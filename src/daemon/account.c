/* SPDX-License-Identifier: MIT */
#include "daemon/account.h"

#include "base/crypto.h"

#include <string.h>

#define TEXT_MAX 256

int account_print(struct cmd_env *env, const char *name, const struct account_keys *keys)
{
	struct buf text[2] = { BUF_INIT(TEXT_MAX), BUF_INIT(TEXT_MAX) };
	for (int i = 0; i < 2; i++)
		base64_encode(span_make(keys->key[i], keys->len[i]), &text[i]);
	bool ok = buf_ok(&text[0]) && buf_ok(&text[1]);
	if (ok)
		fprintf(env->out,
			"account  %s\nkey1     %s\nkey2     %s\n"
			"connect  DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;"
			"TableEndpoint=http://127.0.0.1:10002/%s;\n",
			name, text[0].data, text[1].data, name, text[0].data, name);
	for (int i = 0; i < 2; i++) {
		if (text[i].data != NULL)
			explicit_bzero(text[i].data, text[i].cap);
		buf_fini(&text[i]);
	}
	return ok ? EXIT_DONE : command_fail(env->err, "account", "out of memory");
}

int account_fail(struct cmd_env *env, const char *command, const char *name, enum err e,
	const struct err_detail *why)
{
	if (e == ERR_ACCOUNT_NOT_FOUND && strcmp(command, "account keys") != 0)
		return command_fail(env->err, command,
			"there is no account '%s'; see: rowfs account list %s", name, env->store);
	if (e == ERR_ACCOUNT_NOT_FOUND)
		return command_fail(env->err, command,
			"there is no account '%s'; make it with: rowfs account add %s %s", name,
			env->store, name);
	if (e == ERR_ACCOUNT_EXISTS)
		return command_fail(env->err, command,
			"there is an account '%s' already; its keys: rowfs account keys %s %s",
			name, env->store, name);
	return command_fail(env->err, command, "'%s': %s", name, err_message(e, why));
}
