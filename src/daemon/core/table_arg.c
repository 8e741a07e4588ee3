/* SPDX-License-Identifier: MIT */
#include "daemon/core/table_arg.h"

#include <string.h>

bool table_or_queue_arg_parse(
	const char *text, const char *command, struct table_arg *ret, FILE *err)
{
	static const char mark[] = "/.queue/";
	const char *at = strstr(text, mark);
	if (at == NULL)
		return table_arg_parse(text, "ACCOUNT/TABLE", command, ret, err);
	*ret = (struct table_arg){ .account = span_make(text, (size_t)(at - text)),
		.table = span_of(at + sizeof(mark) - 1),
		.queue = true };
	if (ret->account.n > 0 && ret->table.n > 0 && strchr(ret->table.p, '/') == NULL &&
		strchr(text, '/') == at)
		return true;
	fprintf(err, "rowfs %s: '%s' is not ACCOUNT/.queue/QUEUE\n", command, text);
	return false;
}

bool table_arg_parse(
	const char *text, const char *form, const char *command, struct table_arg *ret, FILE *err)
{
	const char *slash = strchr(text, '/');
	if (slash == NULL || slash == text || slash[1] == '\0' || strchr(slash + 1, '/') != NULL) {
		fprintf(err, "rowfs %s: '%s' is not %s\n", command, text, form);
		return false;
	}
	*ret = (struct table_arg){ .account = span_make(text, (size_t)(slash - text)),
		.table = span_of(slash + 1) };
	return true;
}

bool table_arg_format(const struct args *args, const char *file, const char *command,
	enum transfer_format *ret, FILE *err)
{
	const char *format = args_value(args, "format");
	if (format == NULL) {
		bool csv = file != NULL && span_ends(span_of(file), SPAN_LIT(".csv"));
		*ret = csv ? TRANSFER_CSV : TRANSFER_NDJSON;
		return true;
	}
	bool csv = strcmp(format, "csv") == 0;
	if (!csv && strcmp(format, "ndjson") != 0) {
		fprintf(err, "rowfs %s: --format is ndjson or csv, not '%s'\n", command, format);
		return false;
	}
	*ret = csv ? TRANSFER_CSV : TRANSFER_NDJSON;
	return true;
}

int table_arg_fail(struct cmd_env *env, const char *command, const struct table_arg *t, enum err e,
	const struct err_detail *why)
{
	int an = (int)t->account.n, tn = (int)t->table.n;
	if (e == ERR_ACCOUNT_NOT_FOUND)
		return command_fail(env->err, command,
			"there is no account '%.*s'; make it with: rowfs account add %s %.*s", an,
			t->account.p, env->store, an, t->account.p);
	if (e == ERR_TABLE_NOT_FOUND)
		return command_fail(env->err, command, "there is no table '%.*s' in account '%.*s'",
			tn, t->table.p, an, t->account.p);
	if (e == ERR_QUEUE_NOT_FOUND && t->queue)
		return command_fail(env->err, command, "there is no queue '%.*s' in account '%.*s'",
			tn, t->table.p, an, t->account.p);
	/* The documentation of a service elsewhere explains its codes. */
	bool coded = env->client != NULL;
	return command_fail(env->err, command, "%.*s/%s%.*s: %s%s%s", an, t->account.p,
		t->queue ? ".queue/" : "", tn, t->table.p, coded ? err_code(e) : "",
		coded ? ": " : "", err_message(e, why));
}
