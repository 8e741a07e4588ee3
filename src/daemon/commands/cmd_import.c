/* SPDX-License-Identifier: MIT
 * import: files into a table.  A record that is refused is reported with its place and
 * costs the others nothing. */
#include "codec/json_build.h"
#include "daemon/core/elsewhere.h"
#include "daemon/core/progress.h"
#include "daemon/core/table_arg.h"
#include "daemon/rows/rows.h"
#include "service/core/accounts.h"
#include "service/queue/queues.h"
#include "service/transfer/importer.h"
#include "service/transfer/message_transfer.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define ERRORS_SHOWN 20

struct run {
	struct cmd_env *env;
	const char *input; /* name of the file being read */
	struct progress progress;
	uint64_t done, refused; /* of the files before */
	uint64_t bytes, size;   /* of the files before; of all, 0: not known */
	uint64_t told;
	bool as_json;
	struct json_build json;
};

static bool parse_mode(const char *text, enum import_mode *ret)
{
	static const char *const names[] = { [IMPORT_INSERT] = "insert",
		[IMPORT_UPSERT] = "upsert",
		[IMPORT_MERGE] = "merge",
		[IMPORT_REPLACE] = "replace",
		[IMPORT_DELETE] = "delete" };
	*ret = IMPORT_UPSERT;
	if (text == NULL)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum import_mode)i;
			return true;
		}
	}
	return false;
}

static bool check(const struct args *args, FILE *err)
{
	struct table_arg t;
	enum import_mode mode;
	enum transfer_format format;
	if (!parse_mode(args_value(args, "mode"), &mode)) {
		fprintf(err,
			"rowfs import: --mode is insert, upsert, merge, replace or delete, not '%s'\n",
			args_value(args, "mode"));
		return false;
	}
	if (!table_or_queue_arg_parse(args->words[1], "import", &t, err) ||
		!table_arg_format(args, NULL, "import", &format, err))
		return false;
	if (t.queue && elsewhere_is(args->words[0])) {
		(void)command_fail(err, "import",
			"a queue is imported into a store of this machine, not to a URL");
		return false;
	}
	if (t.queue && (args_value(args, "mode") != NULL || args_value(args, "format") != NULL)) {
		(void)command_fail(err, "import",
			"messages are NDJSON, and are put; a queue takes no --mode and --format");
		return false;
	}
	return true;
}

static void add_error(struct run *r, enum err e, const struct err_detail *detail)
{
	struct json_build *b = &r->json;
	json_open_object(b, NULL);
	json_add_str(b, "file", r->input);
	json_add_count(b, "line", detail->line);
	if (detail->column > 0)
		json_add_count(b, "column", detail->column);
	json_add_str(b, "code", err_code(e));
	json_add_str(b, "message", err_message(e, detail));
	json_close(b);
}

static void tell_error(void *arg, enum err e, const struct err_detail *detail)
{
	struct run *r = arg;
	if (r->told++ >= ERRORS_SHOWN)
		return;
	if (r->as_json)
		add_error(r, e, detail);
	progress_clear(&r->progress);
	fprintf(r->env->err, "%s:%u:", r->input, detail->line);
	if (detail->column > 0)
		fprintf(r->env->err, "%u:", detail->column);
	fprintf(r->env->err, " %s: %s\n", err_code(e), err_message(e, detail));
}

static bool tell_progress(void *arg, const struct import_counts *counts)
{
	struct run *r = arg;
	progress_show(&r->progress, r->done + counts->done, r->bytes + counts->bytes, r->size);
	return !r->env->cancelled(r->env->cancel_arg);
}

/* The size of all inputs; 0 where one of them has none (a pipe). */
static uint64_t size_of(const struct cmd_env *env)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < env->ninputs; i++) {
		struct stat st;
		if (fstat(env->inputs[i].fd, &st) != 0 || !S_ISREG(st.st_mode))
			return 0;
		sum += (uint64_t)st.st_size;
	}
	return sum;
}

/* The queue, made where it is not there yet. */
static enum err open_queue(
	struct cmd_env *env, const struct table_arg *t, uint64_t *ret_id, struct err_detail *why)
{
	struct item account = { 0 };
	bool created;
	enum err e = account_find(env->service, t->account, &account);
	if (e == ERR_OK)
		e = queue_id(env->service, account.id, t->table, ret_id);
	if (e == ERR_QUEUE_NOT_FOUND) {
		e = queue_create(env->service, ORIGIN_COMMAND, account.id, t->table, SPAN_LIT(""),
			&created, why);
		if (e == ERR_OK || e == ERR_QUEUE_EXISTS)
			e = queue_id(env->service, account.id, t->table, ret_id);
	}
	item_fini(&account);
	return e;
}

static void summarize(struct run *r, const char *one, const char *many)
{
	struct cmd_env *env = r->env;
	char done[NUMBER_MAX], refused[NUMBER_MAX], rate[NUMBER_MAX];
	double seconds = progress_seconds(&r->progress);
	progress_clear(&r->progress);
	if (r->told > ERRORS_SHOWN)
		fprintf(env->err, "... and %s more refused\n",
			number_text(r->told - ERRORS_SHOWN, refused));
	number_text(r->done, done);
	number_text(r->refused, refused);
	number_text(seconds > 0 ? (uint64_t)((double)r->done / seconds) : 0, rate);
	fprintf(env->err, "%s %s imported", done, r->done == 1 ? one : many);
	if (r->refused > 0)
		fprintf(env->err, ", %s refused", refused);
	fprintf(env->err, " in %.1f s (%s/s)\n", seconds, rate);
}

static bool print_json(struct run *r, bool complete)
{
	struct json_build *b = &r->json;
	json_close(b);
	json_add_count(b, "imported", r->done);
	json_add_count(b, "refused", r->refused);
	json_add_bool(b, "complete", complete);
	return json_end_print(b, r->env->out) == ERR_OK;
}

/* Prints the error that ended the import, and the first line that was not imported. */
static void tell_end(struct run *r, enum err e, const struct err_detail *why)
{
	if (why->line == 0)
		(void)command_fail(r->env->err, "import", "%s: %s: %s", r->input, err_code(e),
			err_message(e, why));
	else
		(void)command_fail(r->env->err, "import",
			"%s:%u: %s: %s (from this line on nothing was imported)", r->input,
			why->line, err_code(e), err_message(e, why));
}

static enum err import_all(struct run *r, const struct args *args, const struct table_arg *t,
	const struct rows_at *at, uint64_t id, struct import_options *options,
	struct err_detail *why)
{
	struct cmd_env *env = r->env;
	enum err e = ERR_OK;
	for (size_t i = 0; e == ERR_OK && i < env->ninputs; i++) {
		struct import_counts counts;
		FILE *in = env->inputs[i].file;
		r->input = env->inputs[i].name;
		(void)table_arg_format(args, r->input, "import", &options->format, env->err);
		e = t->queue ? messages_import(
				       env->service, ORIGIN_COMMAND, id, in, options, &counts, why)
			     : rows_of(env)->import(env, at, id, in, options, &counts, why);
		r->done += counts.done;
		r->refused += counts.refused;
		r->bytes += counts.bytes;
	}
	progress_clear(&r->progress);
	return e;
}

/* Prints the result, for people or as JSON.  Returns the exit status. */
static int tell_result(struct run *r, const struct args *args, const struct table_arg *t,
	enum err e, const struct err_detail *why)
{
	struct cmd_env *env = r->env;
	bool told = args_has(args, "stop") && r->refused > 0;
	bool whole = e == ERR_OK && r->refused == 0;
	if (e != ERR_OK && env->cancelled(env->cancel_arg))
		(void)command_fail(env->err, "import", "cancelled; what was imported so far stays");
	else if (e != ERR_OK && !told)
		tell_end(r, e, why);
	if (r->as_json && !print_json(r, e == ERR_OK))
		return command_fail(env->err, "import", "%s", err_text(ERR_NO_MEMORY));
	if (!r->as_json && !args_has(args, "quiet"))
		summarize(r, t->queue ? "message" : "row", t->queue ? "messages" : "rows");
	return whole ? EXIT_DONE : EXIT_FAILED;
}

static int run(struct cmd_env *env, const struct args *args)
{
	struct run r = { .env = env, .size = size_of(env), .as_json = args_has(args, "json") };
	struct table_arg t;
	struct err_detail why = { 0 };
	uint64_t id; /* of the table or queue */
	struct import_options options = { .stop_at_error = args_has(args, "stop"),
		.on_error = tell_error,
		.on_progress = tell_progress,
		.arg = &r };
	(void)table_or_queue_arg_parse(args->words[1], "import", &t, env->err);
	(void)parse_mode(args_value(args, "mode"), &options.mode);
	const struct rows_at at = { .account = t.account, .table = t.table };
	enum err e = t.queue ? open_queue(env, &t, &id, &why)
			     : rows_of(env)->make_table(env, &at, &id, &why);
	if (e != ERR_OK)
		return table_arg_fail(env, "import", &t, e, &why);

	progress_start(&r.progress, env, t.queue ? "messages" : "rows");
	if (args_has(args, "quiet") || r.as_json)
		r.progress.to = NULL;
	if (r.as_json) {
		json_begin(&r.json);
		json_open_array(&r.json, "errors");
	}
	e = import_all(&r, args, &t, &at, id, &options, &why);
	return tell_result(&r, args, &t, e, &why);
}

static const struct option_spec options_[] = {
	ELSEWHERE_OPTIONS,
	{ "format", 0, "ndjson|csv", "by default what the file's name ends in, else ndjson" },
	{ "json", 0, NULL, "print an object: imported, refused, complete, the first 20 errors" },
	{ "mode", 0, "MODE", "insert, upsert (the default), merge, replace or delete" },
	{ "quiet", 0, NULL, "show only what goes wrong" },
	{ "stop", 0, NULL, "stop at the first record that is refused" },
	{ NULL },
};

const struct command command_import = {
	.name = "import",
	.topic = TOPIC_ROWS,
	.synopsis =
		"STORE ACCOUNT/TABLE [--mode=MODE] [--format=FORMAT] [--stop] [--quiet] [--json] [FILE...]",
	.summary = "Reads rows from files or standard input into a table",
	.help = "The account must exist; a table that does not exist is made.  ACCOUNT/.queue/QUEUE in\n"
		"place of ACCOUNT/TABLE: messages, as NDJSON, into a queue.  Modes:\n"
		"  insert   new rows only; a row that exists is refused\n"
		"  upsert   insert, or replace what is there\n"
		"  merge    into rows that exist: properties that are not given stay\n"
		"  replace  rows that exist\n"
		"  delete   removes the rows with these keys\n"
		"A record that is refused is reported as FILE:LINE:COLUMN: code: message, the rest\n"
		"is imported, and the exit code is 1.\n",
	.options = options_,
	.min_words = 2,
	.max_words = -1,
	.flags = COMMAND_ELSEWHERE,
	.first_input = 2,
	.check = check,
	.data = run,
};
