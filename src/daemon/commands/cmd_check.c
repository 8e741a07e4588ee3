/* SPDX-License-Identifier: MIT */
#include "codec/json_build.h"
#include "daemon/core/progress.h"
#include "service/check/verify.h"

#include <inttypes.h>

#define FINDINGS_SHOWN 100

struct run {
	struct cmd_env *env;
	struct progress progress;
	uint64_t findings;
	struct json_build json; /* with --json: its array of findings is open */
	bool as_json;
};

static bool tell_finding(void *arg, const char *finding)
{
	struct run *r = arg;
	progress_clear(&r->progress);
	if (r->findings++ >= FINDINGS_SHOWN)
		return !r->env->cancelled(r->env->cancel_arg);
	if (r->as_json)
		json_add_str(&r->json, NULL, finding);
	else
		fprintf(r->env->out, "%s\n", finding);
	return !r->env->cancelled(r->env->cancel_arg);
}

static void tell_progress(void *arg, enum verify_phase phase, uint64_t done, uint64_t total)
{
	struct run *r = arg;
	progress_verify(&r->progress, phase, done, total);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void print_text(struct cmd_env *env, const struct verify_counts *n)
{
	char rows[NUMBER_MAX];
	struct palette p = terminal_palette(&env->terminal, env->out_fd);
	if (n->findings > FINDINGS_SHOWN)
		fprintf(env->out, "... and %" PRIu64 " more\n", n->findings - FINDINGS_SHOWN);
	fprintf(env->out,
		"%s: %" PRIu64 " account%s, %" PRIu64 " table%s, %" PRIu64
		" partition%s, %s row%s, %" PRIu64 " ordinary file%s%s",
		env->store, n->accounts, plural(n->accounts), n->tables, plural(n->tables),
		n->partitions, plural(n->partitions), number_text(n->rows, rows), plural(n->rows),
		n->files, plural(n->files), n->queues + n->containers > 0 ? ", " : ": ");
	if (n->queues > 0)
		fprintf(env->out, "%" PRIu64 " queue%s, %" PRIu64 " message%s%s", n->queues,
			plural(n->queues), n->messages, plural(n->messages),
			n->containers > 0 ? ", " : ": ");
	if (n->containers > 0)
		fprintf(env->out, "%" PRIu64 " container%s, %" PRIu64 " blob%s: ", n->containers,
			plural(n->containers), n->blobs, plural(n->blobs));
	if (n->findings == 0)
		fprintf(env->out, "%sclean%s\n", p.good, p.off);
	else
		fprintf(env->out, "%s%" PRIu64 " finding%s%s\n", p.bad, n->findings,
			plural(n->findings), p.off);
}

static enum err print_json(struct run *r, const struct verify_counts *n)
{
	struct json_build *b = &r->json;
	json_close(b);
	json_add_bool(b, "clean", n->findings == 0);
	json_add_count(b, "found", n->findings);
	json_add_count(b, "accounts", n->accounts);
	json_add_count(b, "tables", n->tables);
	json_add_count(b, "partitions", n->partitions);
	json_add_count(b, "rows", n->rows);
	json_add_count(b, "files", n->files);
	json_add_count(b, "queues", n->queues);
	json_add_count(b, "messages", n->messages);
	json_add_count(b, "containers", n->containers);
	json_add_count(b, "blobs", n->blobs);
	return json_end_print(b, r->env->out);
}

static void drop_json(struct run *r)
{
	struct buf unused = BUF_INIT(SIZE_MAX / 2);
	if (r->as_json)
		json_end(&r->json, &unused);
	buf_fini(&unused);
}

static enum err verify(struct run *r, struct verify_counts *n)
{
	struct cmd_env *env = r->env;
	if (r->as_json) {
		json_begin(&r->json);
		json_open_array(&r->json, "findings");
	}
	progress_start(&r->progress, env, "items");
	enum err e = service_verify(env->service, tell_finding, tell_progress, r, n);
	progress_clear(&r->progress);
	return e;
}

static int run(struct cmd_env *env, const struct args *args)
{
	struct run r = { .env = env, .as_json = args_has(args, "json") };
	struct verify_counts n;
	struct store_info info;
	enum err e = verify(&r, &n);
	if (env->cancelled(env->cancel_arg))
		e = ERR_CANCELLED;
	if (e != ERR_OK && e != ERR_CORRUPT) {
		drop_json(&r);
		return e == ERR_CANCELLED
			? command_fail(env->err, "check", "cancelled")
			: command_fail(env->err, "check", "'%s': %s", env->store, err_text(e));
	}
	if (r.as_json && print_json(&r, &n) != ERR_OK)
		return command_fail(env->err, "check", "%s", err_text(ERR_NO_MEMORY));
	if (!r.as_json)
		print_text(env, &n);
	store_info(service_store(env->service), &info);
	if (info.reclaiming)
		fputs("the space of what was removed is still being reclaimed; a process that serves "
		      "the store goes on with it\n",
			env->err);
	/* The last line of the output stays the one that counts. */
	if (n.findings > 0)
		(void)command_fail(env->err, "check",
			"'%s' is damaged, and nothing was changed.  Keep it as it is, and restore a "
			"backup; 'rowfs salvage' makes a new store of what is sound in it",
			env->store);
	return n.findings == 0 && e == ERR_OK ? EXIT_DONE : EXIT_FAILED;
}

static const struct option_spec options_[] = {
	{ "json", 0, NULL, "print an object: the findings, and what was counted" },
	{ NULL },
};

const struct command command_check = {
	.name = "check",
	.topic = TOPIC_CARE,
	.synopsis = "STORE [--json]",
	.summary = "Verifies the whole store; exit code 0 only if it is clean",
	.help = "Reads everything and changes nothing.  A store that is being served is checked as\n"
		"it is at that moment.\n",
	.options = options_,
	.min_words = 1,
	.max_words = 1,
	.flags = COMMAND_READS | COMMAND_ONLY_READS,
	.data = run,
};
