/* SPDX-License-Identifier: MIT
 * compact: gives the space of removed rows back to the disk, of a store that is served or not. */
#include "codec/json_build.h"
#include "daemon/core/progress.h"

#include <poll.h>

struct run {
	struct cmd_env *env;
	struct progress progress;
};

/* Writers wait for this process meanwhile, so it does not wait for a terminal that was stopped. */
static bool takes_text(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) != 0;
}

static bool on_progress(void *arg, uint64_t done, uint64_t total)
{
	struct run *r = arg;
	if (takes_text(r->env->err_fd))
		progress_show(&r->progress, done, done, total);
	return !r->env->cancelled(r->env->cancel_arg);
}

static uint64_t bytes_of(struct service *s)
{
	struct store_info info;
	store_info(service_store(s), &info);
	return info.bytes;
}

static enum err tell(struct cmd_env *env, bool json, uint64_t before, uint64_t after)
{
	char was[NUMBER_MAX], is[NUMBER_MAX];
	struct json_build b;
	if (!json) {
		fprintf(env->out, "%s: %s before, %s now\n", env->store, size_text(before, was),
			size_text(after, is));
		return ERR_OK;
	}
	json_begin(&b);
	json_add_count(&b, "before", before);
	json_add_count(&b, "after", after);
	return json_end_print(&b, env->out);
}

static int run(struct cmd_env *env, const struct args *args)
{
	struct run r = { .env = env };
	struct err_detail why = { 0 };
	uint64_t before = bytes_of(env->service);
	progress_start(&r.progress, env, NULL);
	if (args_has(args, "quiet"))
		r.progress.to = NULL;
	enum err e = store_compact(service_store(env->service), on_progress, &r, &why);
	progress_clear(&r.progress);
	if (e == ERR_OK)
		e = tell(env, args_has(args, "json"), before, bytes_of(env->service));
	if (e == ERR_OK)
		return EXIT_DONE;
	if (e == ERR_CANCELLED)
		return command_fail(env->err, "compact", "cancelled; the store is as it was");
	if (e == ERR_NOT_SUPPORTED)
		return command_fail(env->err, "compact",
			"'%s' is no file; its cluster takes freed space back by itself",
			env->store);
	return command_fail(env->err, "compact", "'%s': %s", env->store, err_message(e, &why));
}

static const struct option_spec options_[] = {
	{ "json", 0, NULL, "print an object: the bytes before and after" },
	{ "quiet", 0, NULL, "show no progress" },
	{ NULL },
};

const struct command command_compact = {
	.name = "compact",
	.topic = TOPIC_CARE,
	.synopsis = "STORE [--json] [--quiet]",
	.summary = "Gives the space of what was removed back to the disk",
	.help = "A served store gives most of that space back by itself; this command gives all of it\n"
		"back at once.  Readers go on, and writers wait until it ends.  It needs twice the\n"
		"space of what the store holds, for that time.  Ctrl-C leaves the store as it was.\n",
	.options = options_,
	.min_words = 1,
	.max_words = 1,
	.data = run,
};
