/* SPDX-License-Identifier: MIT
 * watch: the changes of a table or a partition, a line each.  With --follow it waits in the process that
 * serves the store, which knows of each change. */
#include "base/clock.h"
#include "daemon/core/elsewhere.h"
#include "daemon/core/place.h"
#include "daemon/core/rows_out.h"
#include "daemon/rows/row_feed.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* After so many changes of others, and after so long, a line tells the position. */
#define POSITION_LINES 1000
#define POSITION_US (UINT64_C(3600) * 1000000)
#define TEXT_BYTES ((size_t)64 << 20)

struct run {
	struct cmd_env *env;
	struct row_feed *feed;
	struct buf text;
	uint64_t told_us; /* when a line was printed last */
	bool printed;
};

static enum err print(struct run *r, struct err_detail *why)
{
	enum err e = buf_full(&r->text);
	if (e == ERR_OK && fwrite(r->text.data, 1, r->text.len, r->env->out) != r->text.len)
		e = rows_out_error(why);
	buf_clear(&r->text);
	r->printed = true;
	r->told_us = clock_mono_us();
	return e == ERR_OK ? rows_out_flush(r->env, why) : e;
}

/* Prints all lines that are there. */
static enum err print_lines(struct run *r, struct err_detail *why)
{
	bool more = true;
	enum err e = ERR_OK;
	while (e == ERR_OK && more && !r->env->cancelled(r->env->cancel_arg)) {
		e = r->feed->read(r->feed, &r->text, &more, why);
		if (e == ERR_OK && r->text.len > 0)
			e = print(r, why);
	}
	return e;
}

static bool owes_position(const struct run *r)
{
	return r->feed->passed >= POSITION_LINES ||
		(r->feed->passed > 0 && clock_mono_us() - r->told_us >= POSITION_US);
}

/* tell: begins with a line that tells the position. */
static enum err follow(struct run *r, bool tell, struct err_detail *why)
{
	enum err e = ERR_OK;
	while (e == ERR_OK && !r->env->cancelled(r->env->cancel_arg)) {
		e = print_lines(r, why);
		if (e == ERR_OK && (tell || owes_position(r))) {
			tell = false;
			r->feed->passed = 0;
			feed_write_position(r->feed->position, &r->text);
			e = print(r, why);
		}
		if (e == ERR_OK)
			r->feed->wait(r->feed);
	}
	return e;
}

static enum err print_position(struct run *r, struct err_detail *why)
{
	fprintf(r->env->out, "%s\n", r->feed->position);
	return rows_out_flush(r->env, why);
}

static enum err watch(struct run *r, const struct args *args, struct err_detail *why)
{
	const char *from = args_value(args, "from");
	bool now = args_has(args, "now");
	const struct row_feed_options o = {
		.start = now           ? FEED_START_NOW
			: from != NULL ? FEED_START_POSITION
				       : FEED_START_KEPT,
		.position = span_of(from != NULL ? from : ""),
		.with_rows = !args_has(args, "no-rows"),
	};
	enum err e = row_feed_open(r->env, args->words[1], &o, &r->feed, why);
	if (e != ERR_OK)
		return e;
	if (args_has(args, "follow"))
		e = follow(r, now, why);
	else
		e = now ? print_position(r, why) : print_lines(r, why);
	bool waits = args_has(args, "follow") || now || from != NULL;
	if (e == ERR_OK && !waits && !r->printed && isatty(r->env->err_fd))
		fputs("no change is kept yet; from now on changes are kept, and --follow waits for "
		      "them\n",
			r->env->err);
	r->feed->close(r->feed);
	return e;
}

static int run(struct cmd_env *env, const struct args *args)
{
	struct err_detail why = { 0 };
	struct run r = { .env = env, .text = BUF_INIT(TEXT_BYTES), .told_us = clock_mono_us() };
	if (args_has(args, "follow") && env->client == NULL && env->served == NULL)
		return command_fail(env->err, "watch",
			"nobody serves %s, so no change can come; start rowfs serve or mount, or "
			"leave out --follow",
			env->store);
	enum err e = watch(&r, args, &why);
	buf_fini(&r.text);
	if (rows_out_reader_left(env))
		return EXIT_FAILED;
	if (env->cancelled(env->cancel_arg) && args_has(args, "follow"))
		return EXIT_DONE;
	if (env->cancelled(env->cancel_arg))
		return command_fail(env->err, "watch", "cancelled");
	return e == ERR_OK ? EXIT_DONE : place_fail(env, "watch", args->words[1], e, &why);
}

static bool check(const struct args *args, FILE *err)
{
	if (!args_has(args, "now") || args_value(args, "from") == NULL)
		return true;
	(void)command_fail(err, "watch", "one of --from and --now");
	return false;
}

static const struct option_spec options_[] = {
	ELSEWHERE_OPTIONS,
	{ "follow", 0, NULL, "go on with each change as it comes, until Ctrl-C" },
	{ "from", 0, "POSITION", "go on behind this position of an earlier line" },
	{ "no-rows", 0, NULL, "leave out the rows themselves" },
	{ "now", 0, NULL, "print the position of now; with --follow the changes after it" },
	{ NULL },
};

const struct command command_watch = {
	.name = "watch",
	.topic = TOPIC_ROWS,
	.synopsis = "STORE ACCOUNT/TABLE[/PARTITION] [--from=POSITION | --now] [--follow] "
		    "[--no-rows]",
	.summary = "Prints the changes of rows, in the order of their commits",
	.help = "Each change is a line of JSON with a position to go on from.  The first call begins the\n"
		"stream.  Changes are kept for 24 hours, and while somebody asks for them once a day.\n",
	.options = options_,
	.min_words = 2,
	.max_words = 2,
	.flags = COMMAND_ELSEWHERE,
	.check = check,
	.data = run,
};
