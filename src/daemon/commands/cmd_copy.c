/* SPDX-License-Identifier: MIT
 * copy: makes a table like another one.  Both are read in the order of their keys and merged, and only
 * the differences are written.  So a copy that was interrupted goes on where it is run again. */
#include "cloud/rows.h"
#include "codec/entity_json.h"
#include "codec/json_build.h"
#include "daemon/core/elsewhere.h"
#include "daemon/core/progress.h"
#include "daemon/core/table_arg.h"
#include "daemon/rows/row_pipe.h"
#include "daemon/serve/whole_store.h"
#include "model/filename.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGV_MAX 14

struct counts {
	uint64_t same, inserted, replaced, deleted;
	uint64_t extra; /* rows that only the destination has, and keeps */
};

struct copy {
	const struct args *args;
	bool dry, deletes, lists;
	bool writes; /* not while it verifies */
	struct row_reader from, to;
	struct row_writer puts, removals;
	struct counts counts;
	struct progress progress;
};

/* ---- the processes ---- */

/* The arguments of a process for one side. */
struct command_line {
	const char *argv[ARGV_MAX];
	size_t n;
	char *texts[4]; /* owned */
	size_t ntexts;
};

static void add_word(struct command_line *l, const char *word)
{
	if (l->n + 1 < ARGV_MAX)
		l->argv[l->n++] = word;
}

static bool add_option(struct command_line *l, const char *name, const char *value)
{
	char *text;
	if (value == NULL)
		return true;
	if (asprintf(&text, "--%s=%s", name, value) < 0)
		return false;
	l->texts[l->ntexts++] = text;
	add_word(l, text);
	return true;
}

static void free_line(struct command_line *l)
{
	for (size_t i = 0; i < l->ntexts; i++)
		free(l->texts[i]);
}

/* The reader and the writers of one side share the rate. */
static bool add_rate(struct command_line *l, const char *rps, unsigned sharers)
{
	char text[24];
	unsigned long n = rps != NULL ? strtoul(rps, NULL, 10) / sharers : 0;
	(void)snprintf(text, sizeof(text), "%lu", n > 0 ? n : 1);
	return rps == NULL || add_option(l, "rps", text);
}

/* side: the index of STORE among the words.  more: ends with NULL. */
static bool make_line(struct command_line *l, const struct args *args, const char *command,
	int side, const char *const *more)
{
	*l = (struct command_line){ 0 };
	add_word(l, command);
	for (; *more != NULL; more++)
		add_word(l, *more);
	bool ok = true;
	if (elsewhere_is(args->words[side]))
		ok = add_option(l, "connection-string", args_value(args, "connection-string")) &&
			add_option(l, "ca-file", args_value(args, "ca-file")) &&
			add_option(l, "timeout", args_value(args, "timeout")) &&
			add_rate(l, args_value(args, "rps"), side == 0 ? 1 : 3);
	add_word(l, "--");
	add_word(l, args->words[side]);
	add_word(l, args->words[side + 1]);
	return ok;
}

static enum err start_reader(
	struct copy *c, int side, bool may_lack, struct row_reader *ret, struct err_detail *why)
{
	const char *const more[] = { "--format=json", "--quiet", may_lack ? "--if-exists" : NULL,
		NULL };
	struct command_line l;
	enum err e = make_line(&l, c->args, "query", side, more)
		? row_reader_start(ret, l.argv, why)
		: ERR_NO_MEMORY;
	free_line(&l);
	return e;
}

static enum err start_writer(
	struct copy *c, const char *mode, struct row_writer *ret, struct err_detail *why)
{
	const char *const more[] = { mode, "--quiet", NULL };
	struct command_line l;
	enum err e = make_line(&l, c->args, "import", 2, more) ? row_writer_start(ret, l.argv, why)
							       : ERR_NO_MEMORY;
	free_line(&l);
	return e;
}

/* ---- one row ---- */

/* A dry run lists what it would do, with the names that a mount shows. */
static void list_row(const struct copy *c, char what, const struct entity *e)
{
	char pk[LIMIT_NAME_BYTES + 1], rk[LIMIT_NAME_BYTES + 1];
	if (!c->lists || !c->writes)
		return;
	(void)filename_encode(e->pk, FILENAME_PARTITION, pk);
	(void)filename_encode(e->rk, FILENAME_ROW, rk);
	printf("%c %s/%s\n", what, pk, rk);
}

static enum err put_row(struct copy *c, char what, struct err_detail *why)
{
	list_row(c, what, &c->from.entity);
	return c->writes && !c->dry ? row_writer_add(&c->puts, c->from.line, why) : ERR_OK;
}

static enum err remove_row(struct copy *c, struct err_detail *why)
{
	enum err e = ERR_OK;
	struct entity keys = {
		.pk = c->to.entity.pk, .rk = c->to.entity.rk, .has_pk = true, .has_rk = true
	};
	list_row(c, '-', &keys);
	if (!c->writes || c->dry)
		return ERR_OK;
	struct buf line = BUF_INIT((size_t)64 << 10);
	entity_json_encode(&keys, ENTITY_JSON_PK | ENTITY_JSON_RK, &line);
	e = buf_full(&line);
	if (e == ERR_OK && c->removals.out == NULL)
		e = start_writer(c, "--mode=delete", &c->removals, why);
	if (e == ERR_OK)
		e = row_writer_add(&c->removals, buf_span(&line), why);
	buf_fini(&line);
	return e;
}

/* Takes what comes first of both sides: a row of one, or the same row of both. */
static enum err take_row(struct copy *c, int order, struct err_detail *why)
{
	struct counts *n = &c->counts;
	if (order < 0) {
		n->inserted++;
		return put_row(c, '+', why);
	}
	if (order > 0) {
		*(c->deletes ? &n->deleted : &n->extra) += 1;
		return c->deletes ? remove_row(c, why) : ERR_OK;
	}
	if (cloud_same_properties(&c->from.entity, &c->to.entity)) {
		n->same++;
		return ERR_OK;
	}
	n->replaced++;
	return put_row(c, '~', why);
}

/* ---- all rows ---- */

static int order_of(const struct copy *c)
{
	if (c->from.ended || c->to.ended)
		return c->from.ended ? 1 : -1;
	return span_cmp(buf_span(&c->from.key), buf_span(&c->to.key));
}

/* One process after another: each begins when the one before it has read a row, so that one that cannot work
 * is the only one that says why. */
static enum err begin(struct copy *c, struct err_detail *why)
{
	enum err e = start_reader(c, 0, false, &c->from, why);
	if (e == ERR_OK)
		e = row_reader_next(&c->from, why);
	if (e == ERR_OK)
		e = start_reader(c, 2, true, &c->to, why);
	if (e == ERR_OK)
		e = row_reader_next(&c->to, why);
	if (e == ERR_OK && c->writes && !c->dry)
		e = start_writer(c, "--mode=upsert", &c->puts, why);
	return e;
}

static enum err merge(struct copy *c, struct err_detail *why)
{
	enum err e = ERR_OK;
	while (e == ERR_OK && !(c->from.ended && c->to.ended)) {
		int order = order_of(c);
		e = take_row(c, order, why);
		if (e == ERR_OK && order <= 0)
			e = row_reader_next(&c->from, why);
		if (e == ERR_OK && order >= 0)
			e = row_reader_next(&c->to, why);
		progress_show(&c->progress, c->from.rows, 0, 0);
	}
	return e;
}

/* The writers end before the readers: a process that opened a closed store waits for those that work
 * through it.  So no reader may be left that writes to a full pipe. */
static bool end_all(struct copy *c)
{
	int puts = row_writer_end(&c->puts), removals = row_writer_end(&c->removals);
	row_reader_stop(&c->from);
	row_reader_stop(&c->to);
	int from = row_reader_end(&c->from), to = row_reader_end(&c->to);
	return puts == 0 && removals == 0 && from == 0 && to == 0;
}

static bool run_pass(struct copy *c)
{
	struct err_detail why = { 0 };
	struct cmd_env env = { .err = stderr, .err_fd = STDERR_FILENO };
	c->counts = (struct counts){ 0 };
	progress_start(&c->progress, &env, c->writes ? "rows" : "rows verified");
	enum err e = begin(c, &why);
	if (e == ERR_OK)
		e = merge(c, &why);
	progress_clear(&c->progress);
	bool ended = end_all(c);
	if (e != ERR_OK)
		(void)command_fail(stderr, "copy", "%s", err_message(e, &why));
	else if (!ended)
		(void)command_fail(stderr, "copy",
			"not all rows could be copied; see above, and run it again for the rest");
	return e == ERR_OK && ended;
}

/* ---- what it tells ---- */

static void tell(const struct copy *c, double seconds)
{
	const struct counts *n = &c->counts;
	char t[5][NUMBER_MAX];
	fprintf(stderr, "%s%s inserted, %s replaced, %s deleted, %s the same",
		c->dry ? "would be: " : "", number_text(n->inserted, t[0]),
		number_text(n->replaced, t[1]), number_text(n->deleted, t[2]),
		number_text(n->same, t[3]));
	if (n->extra > 0)
		fprintf(stderr, "; %s only in the destination (--delete removes them)",
			number_text(n->extra, t[4]));
	fprintf(stderr, " in %.1f s\n", seconds);
}

static void tell_json(const struct counts *n, const bool *verified)
{
	struct json_build b;
	json_begin(&b);
	json_add_count(&b, "inserted", n->inserted);
	json_add_count(&b, "replaced", n->replaced);
	json_add_count(&b, "deleted", n->deleted);
	json_add_count(&b, "same", n->same);
	json_add_count(&b, "extra", n->extra);
	if (verified != NULL)
		json_add_bool(&b, "verified", *verified);
	(void)json_end_print(&b, stdout);
}

/* Reads both sides again, and writes nothing. */
static bool verify(struct copy *c)
{
	const struct counts *n = &c->counts;
	c->writes = false;
	if (!run_pass(c))
		return false;
	uint64_t differences = n->inserted + n->replaced + n->deleted;
	char text[NUMBER_MAX];
	if (differences == 0)
		fprintf(stderr, "verified: %s rows are the same\n", number_text(n->same, text));
	else
		(void)command_fail(stderr, "copy",
			"%s rows differ; other programs may have changed them meanwhile",
			number_text(differences, text));
	return differences == 0;
}

static int run(const struct args *args)
{
	bool json = args_has(args, "json"), verified, verifies = args_has(args, "verify");
	if (args->nwords == 2)
		return whole_store_copy("copy", args->words[0], args->words[1], json);
	struct copy c = { .args = args,
		.dry = args_has(args, "dry-run"),
		.lists = args_has(args, "dry-run") && !json,
		.deletes = args_has(args, "delete"),
		.writes = true };
	if (!run_pass(&c))
		return EXIT_FAILED;
	const struct counts done = c.counts;
	if (!json)
		tell(&c, progress_seconds(&c.progress));
	verified = verifies && verify(&c);
	if (json)
		tell_json(&done, verifies ? &verified : NULL);
	return !verifies || verified ? EXIT_DONE : EXIT_FAILED;
}

/* ---- the command ---- */

static bool check_options(const struct args *args, FILE *err)
{
	const char *file = args_value(args, "connection-string");
	const char *wrong = NULL;
	if (args_has(args, "dry-run") && args_has(args, "verify"))
		wrong = "--verify follows a copy, and --dry-run makes none";
	else if (file != NULL && strcmp(file, "-") == 0)
		wrong = "both sides read the connection strings, so they are in a file";
	else if (strcmp(args->words[0], args->words[2]) == 0 &&
		strcmp(args->words[1], args->words[3]) == 0)
		wrong = "the source and the destination are the same table";
	if (wrong != NULL)
		(void)command_fail(err, "copy", "%s", wrong);
	return wrong == NULL;
}

static bool check_whole(const struct args *args, FILE *err)
{
	static const char *const none[] = { "delete", "dry-run", "verify", "rps", "timeout",
		"ca-file", "connection-string" };
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		if (args_has(args, none[i])) {
			(void)command_fail(err, "copy", "--%s is of a copy of one table", none[i]);
			return false;
		}
	bool elsewhere = elsewhere_is(args->words[0]) || elsewhere_is(args->words[1]);
	if (elsewhere)
		(void)command_fail(err, "copy",
			"an account elsewhere is no store: copy its tables one by one");
	return !elsewhere;
}

static bool check(const struct args *args, FILE *err)
{
	struct table_arg t;
	if (args->nwords == 2)
		return check_whole(args, err);
	if (args->nwords == 3) {
		(void)command_fail(err, "copy",
			"it takes two stores, or a store and a table of it on both sides");
		return false;
	}
	return table_arg_parse(args->words[1], "ACCOUNT/TABLE", "copy", &t, err) &&
		table_arg_parse(args->words[3], "ACCOUNT/TABLE", "copy", &t, err) &&
		check_options(args, err);
}

static const struct option_spec options_[] = {
	ELSEWHERE_OPTIONS,
	{ "delete", 0, NULL, "also remove the rows that only the destination has" },
	{ "dry-run", 'n', NULL, "list what would be done, and do nothing" },
	{ "json", 0, NULL, "print the counts as JSON" },
	{ "verify", 0, NULL, "read both tables again, and compare" },
	{ NULL },
};

const struct command command_copy = {
	.name = "copy",
	.topic = TOPIC_ROWS,
	.synopsis =
		"SOURCE ACCOUNT/TABLE DESTINATION ACCOUNT/TABLE [--delete] [--dry-run] [--verify] "
		"[--json] | SOURCE DESTINATION [--json]",
	.summary = "Makes a table like another one, or a store of another one",
	.help = "SOURCE and DESTINATION are stores, or URLs of accounts elsewhere.  A table that does not\n"
		"exist is made.  Rows that are the same are not written, so run it again after an\n"
		"interruption.  With --dry-run each line is a row: + inserted, ~ replaced, - deleted.\n"
		"\n"
		"Without tables all of SOURCE goes into a new or empty store, to move into a Ceph cluster\n"
		"(rados:POOL/NAME) or out of it: accounts with their keys, tables, queues, blobs, files.\n"
		"SOURCE must not be served, unless it is in a cluster; copy a backup instead.\n",
	.options = options_,
	.min_words = 2,
	.max_words = 4,
	.check = check,
	.local = run,
};
