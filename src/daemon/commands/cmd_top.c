/* SPDX-License-Identifier: MIT
 * top: what a serving process is doing, a screen a second.  It runs in that process, which has the
 * figures, and shows how they changed since the screen before. */
#include "base/clock.h"
#include "codec/json_build.h"
#include "daemon/core/command.h"
#include "daemon/core/hottest.h"
#include "daemon/core/progress.h"
#include "daemon/core/rows_out.h"
#include "service/stats/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_US UINT64_C(1000000)
#define LOOK_US 50000 /* how soon Ctrl-C is noticed */
#define LINES_MAX 16
#define CLEAR "\033[H\033[J"

struct line {
	const char *front_end;
	struct metrics_figures f; /* of this second */
};

/* Those that are of a moment. */
struct figures {
	struct store_info store;
	struct memory_figures memory;
};

struct top {
	struct cmd_env *env;
	struct metrics_figures before[METRICS_FRONT_ENDS_][METRICS_OPERATIONS];
	uint64_t since_us, took_us; /* the second that is shown */
	struct line lines[METRICS_FRONT_ENDS_ * METRICS_OPERATIONS];
	size_t n;
	bool json, clears;
	struct palette palette;
};

static struct metrics_figures difference(
	const struct metrics_figures *now, const struct metrics_figures *before)
{
	struct metrics_figures d = { .name = now->name,
		.count = now->count - before->count,
		.refused = now->refused - before->refused,
		.failed = now->failed - before->failed,
		.total_us = now->total_us - before->total_us,
		.max_us = now->max_us };
	for (size_t i = 0; i < METRICS_BUCKETS; i++)
		d.buckets[i] = now->buckets[i] - before->buckets[i];
	return d;
}

static int by_count(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	return x->f.count < y->f.count ? 1 : x->f.count > y->f.count ? -1 : 0;
}

/* Notes what happened since the last call, most frequent operations first. */
static void sample(struct top *t)
{
	const struct metrics *m = service_metrics(t->env->service);
	uint64_t now = clock_mono_us();
	t->took_us = now - t->since_us;
	t->since_us = now;
	t->n = 0;
	for (enum metrics_front_end i = 0; i < METRICS_FRONT_ENDS_; i++) {
		struct metrics_figures f;
		for (size_t op = 0; op < METRICS_OPERATIONS && metrics_read(m, i, op, &f); op++) {
			struct line *l = &t->lines[t->n];
			*l = (struct line){ metrics_front_end_name(i),
				difference(&f, &t->before[i][op]) };
			t->before[i][op] = f;
			t->n += l->f.count > 0;
		}
	}
	qsort(t->lines, t->n, sizeof(t->lines[0]), by_count);
}

static uint64_t per_second(const struct top *t, uint64_t n)
{
	return t->took_us > 0 ? (n * 100 * SECOND_US + t->took_us / 2) / t->took_us : 0;
}

static void add_line(struct json_build *b, const struct top *t, const struct line *l)
{
	json_open_object(b, NULL);
	json_add_str(b, "front_end", l->front_end);
	json_add_str(b, "operation", l->f.name);
	json_add_hundredths(b, "per_second", per_second(t, l->f.count));
	json_add_count(b, "p50_us", metrics_percentile_us(&l->f, 50));
	json_add_count(b, "p99_us", metrics_percentile_us(&l->f, 99));
	json_add_hundredths(b, "refused_per_second", per_second(t, l->f.refused));
	json_add_hundredths(b, "failed_per_second", per_second(t, l->f.failed));
	json_close(b);
}

static enum err print_json(
	const struct top *t, const struct figures *figures, const struct hottest *hottest)
{
	struct json_build b;
	json_begin(&b);
	json_open_array(&b, "operations");
	for (size_t i = 0; i < t->n; i++)
		add_line(&b, t, &t->lines[i]);
	json_close(&b);
	hottest_add(&b, hottest);
	json_add_count(&b, "bytes", figures->store.bytes);
	json_add_count(&b, "log_bytes", figures->store.log_bytes);
	json_add_count(&b, "commits", figures->store.commits);
	memory_add(&b, &figures->memory);
	return json_end_print(&b, t->env->out);
}

static const char *time_text(uint64_t us, char out[NUMBER_MAX])
{
	if (us < 1000)
		(void)snprintf(out, NUMBER_MAX, "%" PRIu64 " us", us);
	else
		(void)snprintf(
			out, NUMBER_MAX, "%" PRIu64 ".%" PRIu64 " ms", us / 1000, us % 1000 / 100);
	return out;
}

static void print_errors(const struct top *t, uint64_t n, const char *colour)
{
	fprintf(t->env->out, " %s%9" PRIu64 "%s", n > 0 ? colour : "", n,
		n > 0 ? t->palette.off : "");
}

static void print_sizes(const struct top *t, const struct figures *figures)
{
	const struct memory_figures *memory = &figures->memory;
	char bytes[NUMBER_MAX], log[NUMBER_MAX];
	FILE *out = t->env->out;
	fprintf(out, "%s: %s on disk, of that log %s\n", t->env->store,
		size_text(figures->store.bytes, bytes), size_text(figures->store.log_bytes, log));
	fprintf(out, "memory %s", size_text(memory->process, bytes));
	for (enum memory_cache i = 0; i < MEMORY_CACHES_; i++)
		fprintf(out, "%s%s %s", i == 0 ? "; caches: " : ", ", memory_cache_name(i),
			size_text(memory->caches[i], bytes));
	fputs("\n\n", out);
}

static void print_text(
	const struct top *t, const struct figures *figures, const struct hottest *hottest)
{
	char p50[NUMBER_MAX], p99[NUMBER_MAX];
	FILE *out = t->env->out;
	if (t->clears)
		fputs(CLEAR, out);
	print_sizes(t, figures);
	fprintf(out, "%s%-10s %-24s %10s %10s %10s %9s %9s%s\n", t->palette.bold, "front end",
		"operation", "a second", "p50", "p99", "refused", "failed", t->palette.off);
	for (size_t i = 0; i < t->n && i < LINES_MAX; i++) {
		const struct line *l = &t->lines[i];
		fprintf(out, "%-10s %-24s %10" PRIu64 " %10s %10s", l->front_end, l->f.name,
			per_second(t, l->f.count) / 100,
			time_text(metrics_percentile_us(&l->f, 50), p50),
			time_text(metrics_percentile_us(&l->f, 99), p99));
		print_errors(t, l->f.refused, t->palette.warning);
		print_errors(t, l->f.failed, t->palette.bad);
		fputc('\n', out);
	}
	if (t->n == 0)
		fputs("nobody asked for anything in this second\n", out);
	hottest_print(out, hottest);
	if (!t->clears)
		fputs("\n", out);
}

static enum err print(struct top *t, struct err_detail *why)
{
	struct figures figures;
	struct hottest *hottest = hottest_partitions(t->env->service);
	enum err e = ERR_OK;
	store_info(service_store(t->env->service), &figures.store);
	memory_figures(t->env->service, &figures.memory);
	if (t->json)
		e = print_json(t, &figures, hottest);
	else
		print_text(t, &figures, hottest);
	free(hottest);
	return e == ERR_OK ? rows_out_flush(t->env, why) : e;
}

static bool is_cancelled(const struct top *t)
{
	return t->env->cancelled(t->env->cancel_arg);
}

static void wait_a_second(const struct top *t)
{
	static const struct timespec look = { 0, LOOK_US * 1000 };
	while (clock_mono_us() - t->since_us < SECOND_US && !is_cancelled(t))
		(void)nanosleep(&look, NULL);
}

static int run(struct cmd_env *env, const struct args *args)
{
	struct err_detail why = { 0 };
	if (env->served == NULL)
		return command_fail(env->err, "top",
			"nobody serves %s, so there is nothing to show; start rowfs serve or mount",
			env->store);
	struct top *t = calloc(1, sizeof(*t));
	if (t == NULL)
		return command_fail(env->err, "top", "%s", err_text(ERR_NO_MEMORY));
	t->env = env;
	t->json = args_has(args, "json");
	t->palette = terminal_palette(&env->terminal, env->out_fd);
	t->clears = terminal_clears(&env->terminal, env->out_fd) && !args_has(args, "once") &&
		!args_has(args, "no-clear");
	enum err e = ERR_OK;
	bool once = args_has(args, "once"), done = false;
	for (sample(t); e == ERR_OK && !done && !is_cancelled(t); done = once) {
		wait_a_second(t);
		sample(t);
		if (!is_cancelled(t))
			e = print(t, &why);
	}
	free(t);
	if (rows_out_reader_left(env))
		return EXIT_FAILED;
	return e == ERR_OK ? EXIT_DONE : command_fail(env->err, "top", "%s", err_message(e, &why));
}

static const struct option_spec options_[] = {
	{ "json", 0, NULL, "one JSON object a second" },
	{ "no-clear", 0, NULL,
		"print the screens below each other; so it is, too, if the output is no terminal" },
	{ "once", 0, NULL, "look for one second, then end" },
	{ NULL },
};

const struct command command_top = {
	.name = "top",
	.topic = TOPIC_CARE,
	.synopsis = "STORE [--once] [--json] [--no-clear]",
	.summary = "Shows what a served store is doing, once a second",
	.help = "Lists the most frequent operations of this second by front end, their latencies (the\n"
		"median, and what 99 of 100 did not exceed) and errors; the hottest partitions; bytes on disk, and in memory by cache.\n"
		"Ctrl-C ends it.\n",
	.options = options_,
	.min_words = 1,
	.max_words = 1,
	.flags = COMMAND_READS,
	.data = run,
};
