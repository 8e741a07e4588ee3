/* SPDX-License-Identifier: MIT
 * backup: the whole store as of one moment, copied to a file. */
#include "codec/json_build.h"
#include "daemon/core/progress.h"
#include "daemon/serve/whole_store.h"
#include "service/view/views.h"

#include <sys/stat.h>

struct run {
	struct cmd_env *env;
	struct progress progress;
	struct view *view;
};

/* Whether to go on: the view is ended by force as that of any stream. */
static bool on_copied(void *arg, uint64_t done, uint64_t total)
{
	struct run *r = arg;
	struct store_view *unused;
	progress_show(&r->progress, done, done, total);
	if (r->env->cancelled(r->env->cancel_arg) || view_begin(r->view, &unused) != ERR_OK)
		return false;
	view_end(r->view);
	return true;
}

static enum err copy(struct run *r, struct err_detail *why)
{
	struct cmd_env *env = r->env;
	struct store_view *moment;
	enum err e = views_open(service_views(env->service), SPAN_LIT("rowfs backup"), &r->view);
	if (e != ERR_OK)
		return e;
	e = view_begin(r->view, &moment);
	if (e == ERR_OK) {
		progress_start(&r->progress, env, NULL);
		e = store_copy(
			service_store(env->service), moment, env->inputs[0].fd, on_copied, r);
		progress_clear(&r->progress);
		if (e == ERR_NOT_SUPPORTED) /* it is in a cluster */
			e = whole_store_to_file(env, moment, env->inputs[0].fd, why);
		view_end(r->view);
	}
	views_close(r->view);
	return e;
}

static enum err print_json(struct cmd_env *env, const char *file)
{
	struct json_build b;
	struct stat st = { 0 };
	(void)fstat(env->inputs[0].fd, &st);
	json_begin(&b);
	json_add_str(&b, "file", file);
	json_add_count(&b, "bytes", (uint64_t)st.st_size);
	return json_end_print(&b, env->out);
}

static int run(struct cmd_env *env, const struct args *args)
{
	struct run r = { .env = env };
	struct err_detail why = { 0 };
	enum err e = copy(&r, &why);
	if (e == ERR_OK && args_has(args, "json"))
		e = print_json(env, args->words[1]);
	if (e == ERR_OK)
		return EXIT_DONE;
	if (env->cancelled(env->cancel_arg))
		return command_fail(env->err, "backup", "cancelled");
	if (e == ERR_CANCELLED || e == ERR_GONE)
		return command_fail(env->err, "backup",
			"the store changed by more than snapshot-log allows while it was copied, or "
			"its disk is full: try again at a quieter time, or to a faster disk");
	if (e == ERR_NO_SPACE)
		return command_fail(
			env->err, "backup", "'%s': no space left on its disk", args->words[1]);
	return command_fail(env->err, "backup", "'%s' cannot be copied to '%s': %s", env->store,
		args->words[1], err_message(e, &why));
}

static const struct option_spec options_[] = {
	{ "force", 'f', NULL, "replace FILE where it exists" },
	{ "json", 0, NULL, "print an object: the file and its bytes" },
	{ NULL },
};

const struct command command_backup = {
	.name = "backup",
	.topic = TOPIC_CARE,
	.synopsis = "STORE FILE [--force] [--json]",
	.summary = "Copies the whole store as of now to a file",
	.help = "FILE is then a store of its own: 'rowfs check FILE' verifies it; to restore it, mount\n"
		"it, or move it to where the store was.  Writers go on meanwhile.  FILE gets mode\n"
		"0600, for it holds the keys of the accounts, and appears when it is complete.  A\n"
		"file that exists is left as it is.\n",
	.options = options_,
	.min_words = 2,
	.max_words = 2,
	.flags = COMMAND_READS | COMMAND_MAKES_FILE,
	.first_input = 1,
	.data = run,
};
