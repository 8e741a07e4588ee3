/* SPDX-License-Identifier: MIT */
#include "base/new_file.h"
#include "codec/json_build.h"
#include "daemon/core/signals.h"
#include "daemon/serve/salvaged.h"
#include "service/check/verify.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOSSES_SHOWN 100

struct run {
	const char *from, *to;
	char partial[PATH_MAX];
	struct store_salvage salvage;
	struct loss_teller teller;
	struct verify_counts found;
	struct progress checking; /* of the new store */
};

static bool on_finding(void *arg, const char *finding)
{
	struct run *r = arg;
	progress_clear(&r->checking);
	(void)command_fail(stderr, "salvage", "not clean: %s", finding);
	return !signals_cancelled(NULL);
}

static void on_progress(void *arg, enum verify_phase phase, uint64_t done, uint64_t total)
{
	struct run *r = arg;
	progress_verify(&r->checking, phase, done, total);
}

/* Checks the new store before it gets its name. */
static enum err verify(struct run *r, struct err_detail *why)
{
	struct store *store;
	struct service *s;
	enum err e = store_open(r->partial, STORE_OPEN_READ_ONLY, &store, NULL, why);
	if (e == ERR_OK)
		e = service_new(store, &s);
	if (e != ERR_OK)
		return e;
	const struct cmd_env env = { .err = stderr, .err_fd = STDERR_FILENO };
	progress_start(&r->checking, &env, "items checked");
	e = service_verify(s, on_finding, on_progress, r, &r->found);
	progress_clear(&r->checking);
	service_free(s);
	return e;
}

static enum err print(const struct run *r, bool json)
{
	const struct verify_counts *n = &r->found;
	if (!json) {
		printf("%s: %" PRIu64 " accounts, %" PRIu64 " tables, %" PRIu64
		       " partitions, %" PRIu64 " rows, %" PRIu64 " ordinary files",
			r->to, n->accounts, n->tables, n->partitions, n->rows, n->files);
		if (n->queues > 0)
			printf(", %" PRIu64 " queues, %" PRIu64 " messages", n->queues,
				n->messages);
		if (n->containers > 0)
			printf(", %" PRIu64 " containers, %" PRIu64 " blobs", n->containers,
				n->blobs);
		putchar('\n');
		return ERR_OK;
	}
	struct json_build b;
	json_begin(&b);
	json_add_count(&b, "accounts", n->accounts);
	json_add_count(&b, "tables", n->tables);
	json_add_count(&b, "partitions", n->partitions);
	json_add_count(&b, "rows", n->rows);
	json_add_count(&b, "files", n->files);
	json_add_count(&b, "queues", n->queues);
	json_add_count(&b, "messages", n->messages);
	json_add_count(&b, "containers", n->containers);
	json_add_count(&b, "blobs", n->blobs);
	json_add_count(&b, "pages", r->salvage.pages);
	json_add_count(&b, "lost_pages", r->salvage.lost_pages);
	json_add_count(&b, "doubtful", r->salvage.doubtful);
	json_add_count(&b, "losses", r->salvage.losses);
	return json_end_print(&b, stdout);
}

static enum err salvage(struct run *r, bool doubtful, struct err_detail *why)
{
	r->teller.most = LOSSES_SHOWN;
	r->salvage = (struct store_salvage){ .lost = on_loss,
		.progress = on_salvage_progress,
		.arg = &r->teller,
		.take_doubtful = doubtful };
	loss_teller_start(&r->teller, "salvage");
	enum err e = service_salvage_store(r->from, r->partial, &r->salvage, why);
	loss_teller_end(&r->teller, &r->salvage, doubtful ? "" : "; --doubtful takes them");
	if (e != ERR_OK)
		return e;
	e = verify(r, why);
	if (e == ERR_CORRUPT) /* told; it is better than nothing */
		e = ERR_OK;
	if (e == ERR_OK)
		e = new_file_place(r->partial, r->to, false);
	if (e != ERR_OK)
		(void)unlink(r->partial);
	return e == ERR_OK ? new_file_sync_name(r->to) : e;
}

static int run(const struct args *args)
{
	struct run r = { .from = args->words[0], .to = args->words[1] };
	struct err_detail why = { 0 };
	struct stat st;
	signals_catch("salvage");
	if (lstat(r.to, &st) == 0)
		return command_fail(stderr, "salvage",
			"'%s' exists already, and is left as it is; take another name", r.to);
	if (snprintf(r.partial, sizeof(r.partial), "%s.part-%d", r.to, (int)getpid()) >=
		(int)sizeof(r.partial))
		return command_fail(stderr, "salvage", "'%s': the name is too long", r.to);
	enum err e = salvage(&r, args_has(args, "doubtful"), &why);
	if (signals_cancelled(NULL) && e != ERR_OK)
		return command_fail(stderr, "salvage", "cancelled");
	if (e != ERR_OK)
		return command_fail(stderr, "salvage", "cannot make '%s' of '%s': %s", r.to, r.from,
			err_message(e, &why));
	e = print(&r, args_has(args, "json"));
	if (e != ERR_OK)
		return command_fail(stderr, "salvage", "'%s' is made: %s", r.to, err_text(e));
	return r.salvage.losses == 0 && r.found.findings == 0 ? EXIT_DONE : EXIT_FAILED;
}

static const struct option_spec options_[] = {
	{ "doubtful", 0, NULL, "take what may be old or removed, too" },
	{ "json", 0, NULL, "the result as one JSON object" },
	{ NULL },
};

const struct command command_salvage = {
	.name = "salvage",
	.topic = TOPIC_CARE,
	.synopsis = "STORE NEW [--doubtful] [--json]",
	.summary = "Makes a new, clean store of what is sound in a damaged one",
	.help = "Reads STORE page by page, and takes every row, file and account whose pages are\n"
		"sound, also where it cannot be opened any more.  STORE is left as it is, and must not\n"
		"be served.  NEW must not exist; it gets mode 0600 and appears when it is complete.\n"
		"What is lost is told on standard error, as far as it can be known; the exit code is 0\n"
		"only where nothing is.  A row that has lost its Timestamp gets the time of the salvage.\n",
	.options = options_,
	.min_words = 2,
	.max_words = 2,
	.local = run,
};
