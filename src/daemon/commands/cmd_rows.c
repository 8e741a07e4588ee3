/* SPDX-License-Identifier: MIT
 * Rows by path, without a mount: get, put, merge, rm, mv and batch. */
#include "codec/json_build.h"
#include "daemon/core/elsewhere.h"
#include "daemon/core/place.h"
#include "daemon/core/rows_out.h"
#include "daemon/rows/rows.h"
#include "model/etag.h"
#include "service/change/change_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The whole input, which may have so many bytes. */
static enum err read_input(
	struct cmd_env *env, size_t most, struct buf *ret, struct err_detail *why)
{
	const struct cmd_input *in = &env->inputs[0];
	*ret = BUF_INIT(most);
	char piece[16384];
	size_t n;
	while ((n = fread(piece, 1, sizeof(piece), in->file)) > 0 && buf_ok(ret))
		buf_add(ret, piece, n);
	if (ferror(in->file))
		return err_set(why, err_from_errno(errno), "cannot read %s: %s", in->name,
			strerrordesc_np(errno));
	return buf_full(ret);
}

/* ---- get ---- */

static int run_get(struct cmd_env *env, const struct args *args)
{
	int code = EXIT_DONE;
	for (int i = 1; i < args->nwords; i++) {
		struct err_detail why = { 0 };
		enum err e = rows_of(env)->get(env, args->words[i], args_has(args, "json"), &why);
		if (e != ERR_OK && rows_out_reader_left(env))
			return EXIT_FAILED;
		if (e != ERR_OK)
			code = place_fail(env, "get", args->words[i], e, &why);
	}
	return code;
}

static const struct option_spec get_options[] = {
	ELSEWHERE_OPTIONS,
	{ "json", 0, NULL, "one object a line, with PartitionKey, RowKey and Timestamp" },
	{ NULL },
};

const struct command command_get = {
	.name = "get",
	.topic = TOPIC_ROWS,
	.synopsis = "STORE PATH... [--json]",
	.summary = "Prints rows, as their files show them",
	.help = "PATH is ACCOUNT/TABLE/PARTITION/ROW.json, with the names that a mount shows.\n",
	.options = get_options,
	.min_words = 2,
	.max_words = -1,
	.flags = COMMAND_READS | COMMAND_ELSEWHERE,
	.data = run_get,
};

/* ---- conditions ---- */

/* --if-match */
static bool read_condition(const struct args *args, struct row_condition *ret)
{
	const char *text = args_value(args, "if-match");
	int64_t version;
	*ret = (struct row_condition){ .given = text != NULL,
		.absent = text != NULL && *text == 0 };
	if (!ret->given || ret->absent)
		return true;
	if (etag_parse(span_of(text), &ret->any, &version, NULL) != ERR_OK)
		return false;
	ret->etag = ret->any ? NULL : text;
	return true;
}

static bool check_condition(const struct args *args, const char *command, FILE *err)
{
	struct row_condition c;
	if (read_condition(args, &c))
		return true;
	(void)command_fail(err, command,
		"--if-match is an ETag, as 'rowfs ls --json' shows it, or '*', or empty, not '%s'",
		args_value(args, "if-match"));
	return false;
}

static bool check_put(const struct args *args, FILE *err)
{
	return check_condition(args, "put", err);
}

static bool check_merge(const struct args *args, FILE *err)
{
	return check_condition(args, "merge", err);
}

static bool check_rm(const struct args *args, FILE *err)
{
	return check_condition(args, "rm", err);
}

/* ---- put, merge ---- */

static int print_etag(struct cmd_env *env, const char *command, const char *path, const char *etag)
{
	struct json_build b;
	json_begin(&b);
	json_add_str(&b, "path", path);
	json_add_str(&b, "etag", etag);
	return json_end_print(&b, env->out) == ERR_OK
		? EXIT_DONE
		: command_fail(env->err, command, "the row is written, but memory is out");
}

static int run_write(struct cmd_env *env, const struct args *args, const char *command, bool merge)
{
	struct err_detail why = { 0 };
	struct row_condition c;
	struct buf text;
	char etag[CLOUD_ETAG_MAX];
	const char *path = args->words[1];
	(void)read_condition(args, &c);
	enum err e = read_input(env, LIMIT_DOCUMENT_BYTES, &text, &why);
	if (e == ERR_BODY_TOO_LARGE)
		e = ERR_ENTITY_TOO_LARGE;
	if (e == ERR_OK)
		e = rows_of(env)->write(env, path, buf_span(&text), merge, &c, etag, &why);
	buf_fini(&text);
	if (e == ERR_EMPTY)
		(void)err_set(&why, e, "the input is empty; a row without properties is {}");
	if (e != ERR_OK)
		return place_fail(env, command, path, e, &why);
	return args_has(args, "json") ? print_etag(env, command, path, etag) : EXIT_DONE;
}

static int run_put(struct cmd_env *env, const struct args *args)
{
	return run_write(env, args, "put", false);
}

static int run_merge(struct cmd_env *env, const struct args *args)
{
	return run_write(env, args, "merge", true);
}

static const struct option_spec write_options[] = {
	ELSEWHERE_OPTIONS,
	{ "if-match", 0, "ETAG", "only over the row with this ETag; '*': any row; '': no row" },
	{ "json", 0, NULL, "print the ETag of the new version" },
	{ NULL },
};

#define WRITE_HELP \
	"The document is read from FILE or standard input.  The account must exist; a table and a\n" \
	"partition that do not exist are made.\n"

const struct command command_put = {
	.name = "put",
	.topic = TOPIC_ROWS,
	.synopsis = "STORE PATH [FILE] [--if-match=ETAG] [--json]",
	.summary = "Inserts or replaces a row",
	.help = WRITE_HELP,
	.options = write_options,
	.min_words = 2,
	.max_words = 3,
	.flags = COMMAND_ELSEWHERE,
	.first_input = 2,
	.check = check_put,
	.data = run_put,
};

const struct command command_merge = {
	.name = "merge",
	.topic = TOPIC_ROWS,
	.synopsis = "STORE PATH [FILE] [--if-match=ETAG] [--json]",
	.summary = "Merges properties into a row, or inserts it",
	.help = WRITE_HELP "Properties that the document lacks stay as they are.\n",
	.options = write_options,
	.min_words = 2,
	.max_words = 3,
	.flags = COMMAND_ELSEWHERE,
	.first_input = 2,
	.check = check_merge,
	.data = run_merge,
};

/* ---- rm ---- */

static int run_rm(struct cmd_env *env, const struct args *args)
{
	int code = EXIT_DONE;
	struct row_condition c;
	(void)read_condition(args, &c);
	for (int i = 1; i < args->nwords && !env->cancelled(env->cancel_arg); i++) {
		struct err_detail why = { 0 };
		enum err e = rows_of(env)->remove(
			env, args->words[i], args_has(args, "recursive"), &c, &why);
		if (e != ERR_OK)
			code = place_fail(env, "rm", args->words[i], e, &why);
	}
	return code;
}

/* A person is asked; a script is not. */
static bool ask_rm(const struct args *args)
{
	char answer[16];
	if (!args_has(args, "recursive") || args_has(args, "yes") || !isatty(STDIN_FILENO))
		return true;
	fprintf(stderr, "rowfs rm: remove ");
	for (int i = 1; i < args->nwords; i++)
		fprintf(stderr, "%s'%s'", i > 1 ? ", " : "", args->words[i]);
	fprintf(stderr, " with all below? [y/N] ");
	if (fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
		return true;
	fprintf(stderr, "rowfs rm: nothing was removed\n");
	return false;
}

static const struct option_spec rm_options[] = {
	ELSEWHERE_OPTIONS,
	{ "if-match", 0, "ETAG", "only the row with this ETag" },
	{ "recursive", 'r', NULL, "also partitions, tables and accounts, with all below them" },
	{ "yes", 'y', NULL, "do not ask before -r" },
	{ NULL },
};

const struct command command_rm = {
	.name = "rm",
	.topic = TOPIC_ROWS,
	.synopsis = "STORE PATH... [--recursive] [--yes] [--if-match=ETAG]",
	.summary = "Removes rows, partitions, tables or accounts",
	.help = "On a terminal -r asks first.  However much is below, it is gone in one step.\n"
		"What is removed so is not in the trash of a mount.\n",
	.options = rm_options,
	.min_words = 2,
	.max_words = -1,
	.flags = COMMAND_ELSEWHERE,
	.check = check_rm,
	.ask = ask_rm,
	.data = run_rm,
};

/* ---- mv ---- */

static int run_mv(struct cmd_env *env, const struct args *args)
{
	struct err_detail why = { 0 };
	char *blamed = NULL;
	enum err e = rows_of(env)->move(env, args->words[1], args->words[2], &blamed, &why);
	int code = EXIT_DONE;
	if (e != ERR_OK)
		code = place_fail(env, "mv", blamed != NULL ? blamed : args->words[1], e, &why);
	free(blamed);
	return code;
}

static const struct option_spec mv_options[] = {
	ELSEWHERE_OPTIONS,
	{ NULL },
};

const struct command command_mv = {
	.name = "mv",
	.topic = TOPIC_ROWS,
	.synopsis = "STORE PATH NEW",
	.summary = "Gives a row, partition or account another name",
	.help = "The keys of a row are its name, so this changes them, in one step.  NEW may be the\n"
		"directory to move into.  A row at NEW is replaced.\n",
	.options = mv_options,
	.min_words = 3,
	.max_words = 3,
	.flags = COMMAND_ELSEWHERE,
	.data = run_mv,
};

/* ---- batch ---- */

static enum err apply_batch(struct cmd_env *env, const struct args *args, const struct rows_at *at,
	struct buf *out, struct err_detail *why)
{
	struct buf text;
	struct change_set set = { 0 };
	bool checked = args_has(args, "check");
	const struct change_set_place place = { .account = at->account,
		.table = at->table,
		.pk = at->pk != NULL ? *at->pk : (struct span){ 0 } };
	enum err e = read_input(env, LIMIT_BATCH_BYTES, &text, why);
	if (e == ERR_OK)
		e = change_set_parse(buf_span(&text), &place, &set, why);
	if (e == ERR_OK)
		e = rows_of(env)->apply(env, at, &set, checked, why);
	change_set_result(&set, e, why, checked, out);
	change_set_fini(&set);
	buf_fini(&text);
	return e;
}

static int run_batch(struct cmd_env *env, const struct args *args)
{
	struct err_detail why = { 0 };
	struct rows_path path;
	struct buf out = BUF_INIT((size_t)2 << 20);
	enum err e = rows_of(env)->find(env, args->words[1], true, &path, &why);
	if (e == ERR_OK)
		e = apply_batch(env, args, &path.at, &out, &why);
	(void)fwrite(out.data != NULL ? out.data : "", 1, out.len, env->out);
	int code = e == ERR_OK ? EXIT_DONE : place_fail(env, "batch", args->words[1], e, &why);
	buf_fini(&out);
	return code;
}

static const struct option_spec batch_options[] = {
	ELSEWHERE_OPTIONS,
	{ "check", 0, NULL, "say what would happen, and change nothing" },
	{ NULL },
};

const struct command command_batch = {
	.name = "batch",
	.topic = TOPIC_ROWS,
	.synopsis = "STORE ACCOUNT/TABLE[/PARTITION] [FILE] [--check]",
	.summary = "Applies a change set: all of it or nothing",
	.help = "Reads what a .batch file of a mount takes, and prints the result as JSON.  A partition\n"
		"that does not exist is made.\n",
	.options = batch_options,
	.min_words = 2,
	.max_words = 3,
	.flags = COMMAND_ELSEWHERE,
	.first_input = 2,
	.data = run_batch,
};
