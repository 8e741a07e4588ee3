/* SPDX-License-Identifier: MIT */
#include "daemon/core/elsewhere.h"
#include "daemon/core/progress.h"
#include "daemon/core/rows_out.h"
#include "daemon/core/table_arg.h"
#include "daemon/rows/rows.h"
#include "service/check/estimate.h"
#include "service/check/salvage.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service/queue/queues.h"
#include "service/transfer/message_transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct run {
	struct cmd_env *env;
	struct row_source *source;
	struct progress progress; /* of messages */
	uint64_t messages, expected;
};

static bool check(const struct args *args, FILE *err)
{
	struct table_arg t;
	enum transfer_format format;
	if (args_has(args, "skip-damaged") &&
		(args->nwords > 2 || args_has(args, "output") || args_has(args, "format") ||
			args_has(args, "filter"))) {
		(void)command_fail(err, "export",
			"--skip-damaged writes a whole table as NDJSON to standard output");
		return false;
	}
	if (!table_or_queue_arg_parse(args->words[1], "export", &t, err) ||
		!table_arg_format(args, NULL, "export", &format, err))
		return false;
	if (elsewhere_is(args->words[0]) && (t.queue || args_has(args, "skip-damaged"))) {
		(void)command_fail(err, "export",
			"a queue and --skip-damaged are for a store of this machine, not for a URL");
		return false;
	}
	if (t.queue &&
		(args->nwords > 2 || args_has(args, "skip-damaged") ||
			args_value(args, "filter") != NULL || args_value(args, "format") != NULL)) {
		(void)command_fail(err, "export",
			"a queue is written whole, as NDJSON; it takes no PARTITION, --filter, "
			"--format and --skip-damaged");
		return false;
	}
	return true;
}

static enum err open_rows(struct run *r, const struct args *args, const struct table_arg *t,
	enum row_form form, struct err_detail *why)
{
	struct row_query q = ROW_QUERY_ALL(form);
	struct rows_at at = { .account = t->account, .table = t->table };
	struct span key;
	if (args->nwords > 2) {
		key = span_of(args->words[2]);
		at.pk = &key;
	}
	enum err e = row_query_set(&q, "filter", args_value(args, "filter"), why);
	if (e == ERR_OK)
		e = rows_of(r->env)->stream(r->env, &at, &q, "rowfs export", &r->source, why);
	else
		row_query_fini(&q);
	return e;
}

/* Returns how many rows are expected; 0: it is not known. */
static uint64_t expected_rows(
	struct cmd_env *env, const struct args *args, const struct table_arg *t)
{
	struct item table = { 0 }, partition = { 0 };
	struct estimate rows = { 0 };
	if (env->service == NULL || args_value(args, "filter") != NULL || !isatty(env->err_fd))
		return 0;
	struct store *s = service_store(env->service);
	enum err e = table_find(env->service, t->account, t->table, &table);
	if (e == ERR_OK && args->nwords > 2)
		e = store_child(s, NULL, table.id, CLASS_KEYED, span_of(args->words[2]), WANT_ATTRS,
			&partition);
	else if (e == ERR_OK)
		e = estimate_table(s, NULL, table.id, &rows);
	uint64_t n = args->nwords > 2 ? partition.size : rows.items;
	item_fini(&partition);
	item_fini(&table);
	return e == ERR_OK ? n : 0;
}

/* ---- queues ---- */

static bool on_messages(void *arg, struct span lines, uint64_t n)
{
	struct run *r = arg;
	r->messages += n;
	progress_show(&r->progress, r->messages, r->messages, r->expected);
	return fwrite(lines.p, 1, lines.n, r->env->out) == lines.n &&
		!r->env->cancelled(r->env->cancel_arg);
}

static enum err write_messages(struct run *r, const struct table_arg *t, struct err_detail *why)
{
	struct service *s = r->env->service;
	struct item account = { 0 };
	uint64_t id;
	enum err e = account_find(s, t->account, &account);
	if (e == ERR_OK)
		e = queue_id(s, account.id, t->table, &id);
	item_fini(&account);
	if (e != ERR_OK)
		return e;
	struct item queue = { 0 };
	if (store_get(service_store(s), NULL, id, WANT_ATTRS, &queue) == ERR_OK)
		r->expected = queue.size;
	item_fini(&queue);
	progress_start(&r->progress, r->env, "messages");
	if (isatty(r->env->out_fd))
		r->progress.to = NULL;
	e = messages_export(s, id, on_messages, r);
	progress_clear(&r->progress);
	if ((e == ERR_CANCELLED && !r->env->cancelled(r->env->cancel_arg)) ||
		(e == ERR_OK && fflush(r->env->out) != 0))
		e = rows_out_error(why);
	return e;
}

/* ---- --skip-damaged ---- */

static bool on_salvaged(void *arg, struct span line)
{
	struct run *r = arg;
	return fwrite(line.p, 1, line.n, r->env->out) == line.n &&
		!r->env->cancelled(r->env->cancel_arg);
}

static void on_lost(void *arg, const char *what)
{
	struct run *r = arg;
	(void)command_fail(r->env->err, "export", "%s", what);
}

static int skip_damaged(struct cmd_env *env, const struct table_arg *t)
{
	struct run r = { .env = env };
	struct salvage to = { .row = on_salvaged, .lost = on_lost, .arg = &r };
	struct err_detail why = { 0 };
	struct item table = { 0 };
	enum err e = table_find(env->service, t->account, t->table, &table);
	if (e == ERR_OK)
		e = service_salvage(env->service, table.id, &to);
	item_fini(&table);
	if (e == ERR_OK)
		e = rows_out_flush(env, &why);
	if (e == ERR_CANCELLED && env->cancelled(env->cancel_arg))
		return command_fail(env->err, "export", "cancelled");
	if (e == ERR_CANCELLED)
		e = rows_out_error(&why);
	if (e != ERR_OK)
		return table_arg_fail(env, "export", t, e, &why);
	if (to.losses == 0 && (env->salvaged == NULL || env->salvaged->losses == 0))
		return EXIT_DONE;
	return command_fail(env->err, "export",
		"%" PRIu64 " rows were written; what is told above was left out%s", to.rows,
		env->salvaged == NULL ? ".  More may be found while nobody serves the store" : "");
}

static int run(struct cmd_env *env, const struct args *args)
{
	struct run r = { .env = env };
	struct table_arg t;
	struct err_detail why = { 0 };
	enum transfer_format format;
	(void)table_or_queue_arg_parse(args->words[1], "export", &t, env->err);
	(void)table_arg_format(args, args_value(args, "output"), "export", &format, env->err);
	if (args_has(args, "skip-damaged"))
		return skip_damaged(env, &t);
	enum err e;
	if (t.queue)
		e = write_messages(&r, &t, &why);
	else
		e = open_rows(&r, args, &t, format == TRANSFER_CSV ? ROW_FORM_CSV : ROW_FORM_NDJSON,
			&why);
	if (e == ERR_OK && !t.queue)
		e = rows_out(env, r.source, expected_rows(env, args, &t), 0, &why);
	if (r.source != NULL)
		r.source->close(r.source);
	if (e == ERR_OK)
		return EXIT_DONE;
	if (rows_out_reader_left(env))
		return EXIT_FAILED;
	if (env->cancelled(env->cancel_arg))
		return command_fail(env->err, "export", "cancelled");
	if (e == ERR_NOT_FOUND)
		return command_fail(env->err, "export", "there is no partition '%s' in %s",
			args->words[2], args->words[1]);
	return table_arg_fail(env, "export", &t, e, &why);
}

static const struct option_spec options_[] = {
	ELSEWHERE_OPTIONS,
	{ "filter", 0, "FILTER", "only the rows that match, as for query" },
	{ "format", 0, "ndjson|csv", "by default what --output ends in, else ndjson" },
	{ "output", 'o', "FILE", "write to FILE instead of standard output" },
	{ "skip-damaged", 0, NULL, "NDJSON of what can be read of a table in a damaged store" },
	{ NULL },
};

const struct command command_export = {
	.name = "export",
	.topic = TOPIC_ROWS,
	.synopsis =
		"STORE ACCOUNT/TABLE [PARTITION] [--filter=FILTER] [--format=FORMAT] [--output=FILE] "
		"[--skip-damaged]",
	.summary = "Writes the rows of a table or a partition, from one snapshot",
	.help = "ACCOUNT/.queue/QUEUE in place of ACCOUNT/TABLE: the messages of a queue, as NDJSON.\n"
		"PARTITION is a PartitionKey as it is, not as a file name.  With --skip-damaged what is\n"
		"left out is told on standard error, and the exit code is 1 then; what can be read of a\n"
		"store that nobody serves is gathered in TMPDIR (/var/tmp) first.\n",
	.options = options_,
	.min_words = 2,
	.max_words = 3,
	.flags = COMMAND_READS | COMMAND_OUTPUT | COMMAND_SALVAGES | COMMAND_ELSEWHERE,
	.check = check,
	.data = run,
};
