/* SPDX-License-Identifier: MIT
 * query: the rows of a table or partition that match, for people and for scripts. */
#include "daemon/core/elsewhere.h"
#include "daemon/core/place.h"
#include "daemon/core/rows_out.h"
#include "daemon/rows/rows.h"

#include <string.h>
#include <unistd.h>

static const struct {
	enum row_form form;
	bool aligned;
	const char *name;
} formats[] = {
	{ ROW_FORM_CSV, true, "table" },
	{ ROW_FORM_NDJSON, false, "ndjson" },
	{ ROW_FORM_JSON, false, "json" },
	{ ROW_FORM_CSV, false, "csv" },
};

/* The format, or what --count and --explain ask for.  terminal: the output is for a person. */
static bool read_form(const struct args *args, bool terminal, enum row_form *ret, bool *ret_aligned)
{
	const char *name = args_value(args, "format");
	if (args_has(args, "json") && name != NULL)
		return false;
	name = args_has(args, "json") ? "ndjson" : name;
	*ret_aligned = false;
	*ret = args_has(args, "count") ? ROW_FORM_COUNT : ROW_FORM_EXPLAIN;
	if (args_has(args, "count") || args_has(args, "explain"))
		return name == NULL && args_has(args, "count") != args_has(args, "explain");
	if (name == NULL)
		name = terminal ? "table" : "ndjson";
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (strcmp(name, formats[i].name) == 0) {
			*ret = formats[i].form;
			*ret_aligned = formats[i].aligned;
			return true;
		}
	return false;
}

static enum err read_query(const struct args *args, struct row_query *q, struct err_detail *why)
{
	const char *filter = args->nwords > 2 ? args->words[2] : NULL;
	enum err e = row_query_set(q, "filter", filter, why);
	if (e == ERR_OK)
		e = row_query_set(q, "select", args_value(args, "select"), why);
	if (e == ERR_OK)
		e = row_query_set(q, "top", args_value(args, "top"), why);
	return e;
}

static bool check(const struct args *args, FILE *err)
{
	enum row_form form;
	bool aligned;
	struct err_detail why = { 0 };
	if (!read_form(args, false, &form, &aligned)) {
		(void)command_fail(err, "query",
			"one of --format=table, ndjson, json or csv, --json, --count and --explain");
		return false;
	}
	struct row_query q = ROW_QUERY_ALL(form);
	enum err e = read_query(args, &q, &why);
	row_query_fini(&q);
	if (e != ERR_OK)
		(void)command_fail(err, "query", "%s", err_message(e, &why));
	return e == ERR_OK;
}

static enum err open_rows(struct cmd_env *env, const struct args *args, struct row_query *q,
	struct row_source **ret, struct err_detail *why)
{
	struct rows_path path;
	enum err e = rows_of(env)->find(env, args->words[1], false, &path, why);
	if (e == ERR_OK)
		e = read_query(args, q, why);
	if (e == ERR_OK)
		e = rows_of(env)->stream(env, &path.at, q, "rowfs query", ret, why);
	else
		row_query_fini(q);
	return e;
}

/* The text of no rows. */
static int print_none(struct cmd_env *env, enum row_form form)
{
	fputs(form == ROW_FORM_JSON ? "[\n]\n" : form == ROW_FORM_COUNT ? "0\n" : "", env->out);
	return EXIT_DONE;
}

static int run(struct cmd_env *env, const struct args *args)
{
	struct err_detail why = { 0 };
	struct row_source *source = NULL;
	enum row_form form;
	bool aligned;
	(void)read_form(args, isatty(env->out_fd), &form, &aligned);
	struct row_query q = ROW_QUERY_ALL(form);
	enum err e = open_rows(env, args, &q, &source, &why);
	if (e == ERR_OK)
		e = rows_out(env, source, 0,
			(aligned ? ROWS_OUT_ALIGNED : 0u) |
				(args_has(args, "quiet") ? ROWS_OUT_QUIET : 0u),
			&why);
	if (source != NULL)
		source->close(source);
	if (e == ERR_OK)
		return EXIT_DONE;
	if (rows_out_reader_left(env))
		return EXIT_FAILED;
	if (env->cancelled(env->cancel_arg))
		return command_fail(env->err, "query", "cancelled");
	if (e == ERR_TABLE_NOT_FOUND && args_has(args, "if-exists"))
		return print_none(env, form);
	return place_fail(env, "query", args->words[1], e, &why);
}

static const struct option_spec options_[] = {
	ELSEWHERE_OPTIONS,
	{ "count", 0, NULL, "print only how many rows match" },
	{ "explain", 0, NULL, "print the plan, and how many rows were looked at" },
	{ "format", 0, "FORMAT", "table (the default on a terminal), ndjson, json or csv" },
	{ "if-exists", 0, NULL, "print nothing if the table does not exist" },
	{ "json", 0, NULL, "the same as --format=ndjson" },
	{ "quiet", 0, NULL, "show no progress" },
	{ "select", 0, "A,B,...", "only these properties" },
	{ "top", 0, "N", "only the first N rows" },
	{ NULL },
};

const struct command command_query = {
	.name = "query",
	.topic = TOPIC_ROWS,
	.synopsis = "STORE ACCOUNT/TABLE[/PARTITION] [FILTER] [--select=A,B] [--top=N] "
		    "[--format=FORMAT | --json | --count | --explain] [--if-exists] [--quiet]",
	.summary = "Prints the rows that match a filter",
	.help = "FILTER is a $filter of the Table service, such as \"Rating ge 4 and Text ne 'Hi'\".\n"
		"Off a terminal the default format is NDJSON.\n",
	.options = options_,
	.min_words = 2,
	.max_words = 3,
	.flags = COMMAND_READS | COMMAND_ELSEWHERE,
	.check = check,
	.data = run,
};
