/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "daemon/core/account.h"

#define LIST_LIMIT (256u << 20)

static bool add_json(void *arg, const struct item *it)
{
	struct buf *names = arg;
	buf_add_str(names, "{\"account\":");
	buf_add_json(names, it->key);
	buf_add_str(names, "}\n");
	return !names->failed;
}

static bool add(void *arg, const struct item *it)
{
	struct buf *names = arg;
	buf_add_span(names, it->key);
	buf_add_char(names, '\n');
	return !names->failed;
}

static int run(struct cmd_env *env, const struct args *args)
{
	struct buf names = BUF_INIT(LIST_LIMIT);
	enum err e = store_list(service_store(env->service), NULL, STORE_ROOT, CLASS_KEYED,
		(struct span){ 0 }, false, WANT_ATTRS, args_has(args, "json") ? add_json : add,
		&names);
	if (e == ERR_OK && !buf_ok(&names))
		e = ERR_NO_MEMORY;
	if (e == ERR_OK && names.len > 0)
		(void)fwrite(names.data, 1, names.len, env->out);
	else if (e == ERR_OK)
		fprintf(env->err, "no accounts yet; make one with: rowfs account add %s NAME\n",
			args->words[0]);
	buf_fini(&names);
	if (e != ERR_OK)
		return command_fail(env->err, "account list", "'%s': %s", env->store, err_text(e));
	return EXIT_DONE;
}

static const struct option_spec options[] = {
	{ "json", 0, NULL, "one object a line" },
	{ NULL },
};

const struct command command_account_list = {
	.name = "account list",
	.topic = TOPIC_ACCOUNTS,
	.synopsis = "STORE [--json]",
	.summary = "Lists the accounts",
	.options = options,
	.min_words = 1,
	.max_words = 1,
	.flags = COMMAND_READS,
	.data = run,
};
