/* SPDX-License-Identifier: MIT */
#include "daemon/progress.h"
#include "daemon/target.h"
#include "service/tables.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

struct run {
	struct cmd_env *env;
	struct progress progress;
};

static bool check(const struct args *args, FILE *err)
{
	struct target t;
	enum transfer_format format;
	return table_target_parse(args->words[1], "export", &t, err) &&
		target_format(args, NULL, "export", &format, err);
}

static bool tell_progress(void *arg, uint64_t rows)
{
	struct run *r = arg;
	progress_show(&r->progress, rows, 0, 0);
	return !r->env->cancelled(r->env->cancel_arg);
}

/* Whoever reads our output has had enough (head): no reason for a message. */
static bool reader_left(const struct cmd_env *env)
{
	struct pollfd p = { .fd = env->out_fd };
	return poll(&p, 1, 0) > 0 && (p.revents & POLLERR) != 0;
}

static int run(struct cmd_env *env, const struct args *args)
{
	struct run r = { .env = env };
	struct target t;
	struct err_detail why = { 0 };
	struct item table = { 0 };
	struct export_options options = { .on_progress = tell_progress, .arg = &r };
	(void)table_target_parse(args->words[1], "export", &t, env->err);
	(void)target_format(args, args_value(args, "output"), "export", &options.format, env->err);
	enum err e = table_find(env->service, t.account, t.table, &table);
	uint64_t table_id = table.id;
	item_fini(&table);
	if (e != ERR_OK)
		return target_fail(env, "export", &t, e, &why);

	struct span partition;
	if (args->nwords > 2) {
		partition = span_of(args->words[2]);
		options.partition = &partition;
	}
	/* A progress line would be drawn over the rows. */
	progress_start(&r.progress, env, "rows");
	if (isatty(env->out_fd))
		r.progress.to = NULL;
	uint64_t rows = 0;
	e = export_stream(env->service, table_id, env->out, &options, &rows, &why);
	progress_clear(&r.progress);
	int code = e == ERR_OK && fflush(env->out) != 0 ? errno : 0;
	if (e == ERR_OK && code == 0)
		return EXIT_DONE;
	if (reader_left(env))
		return EXIT_FAILED;
	if (env->cancelled(env->cancel_arg))
		return command_fail(env->err, "export", "cancelled");
	if (e == ERR_NOT_FOUND)
		return command_fail(env->err, "export", "there is no partition '%s' in %s",
			args->words[2], args->words[1]);
	if (e == ERR_OK)
		return command_fail(
			env->err, "export", "cannot write the output: %s", strerrordesc_np(code));
	return target_fail(env, "export", &t, e, &why);
}

static const struct option_spec options_[] = {
	{ "format", 0, "ndjson|csv", "by default what --output ends in, else ndjson" },
	{ "output", 'o', "FILE", "write to FILE instead of standard output" },
	{ NULL },
};

const struct command command_export = {
	.name = "export",
	.synopsis = "STORE ACCOUNT/TABLE [PARTITION] [--format=FORMAT] [--output=FILE]",
	.summary = "Writes the rows of a table or a partition, from one snapshot",
	.help = "PARTITION is a PartitionKey as it is, not as a file name.\n",
	.options = options_,
	.min_words = 2,
	.max_words = 3,
	.flags = COMMAND_READS | COMMAND_OUTPUT,
	.check = check,
	.data = run,
};
