/* SPDX-License-Identifier: MIT */
#include "daemon/serve/whole_store.h"

#include "base/new_file.h"
#include "codec/json_build.h"
#include "daemon/core/progress.h"
#include "daemon/core/scratch.h"
#include "daemon/core/signals.h"
#include "service/check/estimate.h"
#include "service/transfer/store_transfer.h"
#include "store/engines.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

struct run {
	struct progress progress;
	const struct cmd_env *env;
	uint64_t expected; /* items */
	struct store_transfer_counts counts;
};

static bool on_commit(void *arg, const struct store_transfer_counts *so_far)
{
	struct run *r = arg;
	progress_show(&r->progress, so_far->items, so_far->items, r->expected);
	return !r->env->cancelled(r->env->cancel_arg);
}

static enum err transfer(struct run *r, struct store *from, struct store_view *v, struct store *to,
	struct err_detail *why)
{
	struct estimate all = { 0 };
	if (estimate_store(from, v, &all) == ERR_OK)
		r->expected = all.items + all.directories;
	progress_start(&r->progress, r->env, "items");
	enum err e = store_transfer(from, v, to, on_commit, r, &r->counts, why);
	progress_clear(&r->progress);
	return e;
}

/* ---- into a file ---- */

static enum err gather(
	struct cmd_env *env, struct store_view *v, const char *path, int fd, struct err_detail *why)
{
	struct run r = { .env = env };
	struct store *to = NULL;
	struct store_view *all = NULL;
	enum err e = store_create(path, why);
	if (e == ERR_OK)
		e = store_open(path, 0, &to, NULL, why);
	if (e == ERR_OK)
		e = transfer(&r, service_store(env->service), v, to, why);
	if (e == ERR_OK)
		e = store_view_open(to, &all);
	if (e == ERR_OK) {
		e = store_copy(to, all, fd, NULL, NULL);
		store_view_close(to, all);
	}
	store_close(to);
	return e;
}

enum err whole_store_to_file(
	struct cmd_env *env, struct store_view *v, int fd, struct err_detail *why)
{
	struct scratch s;
	enum err e = scratch_make(&s, "backup", why);
	if (e == ERR_OK)
		e = gather(env, v, s.path, fd, why);
	scratch_remove(&s);
	return e;
}

/* ---- into another store ---- */

/* The destination.  A new file gets its name when it is complete. */
struct target {
	const char *name;
	char path[PATH_MAX];
	bool makes; /* it is a file that was not there */
	bool made;
	struct store *store;
};

static enum err open_target(struct target *t, struct err_detail *why)
{
	struct stat st;
	bool remote = store_is_remote(t->name), empty = false;
	t->makes = !remote && lstat(t->name, &st) != 0;
	int n = snprintf(
		t->path, sizeof(t->path), t->makes ? "%s.part-%d" : "%s", t->name, (int)getpid());
	if (n >= (int)sizeof(t->path))
		return err_set(why, ERR_NAME_TOO_LONG, NULL);
	enum err e = remote || t->makes ? store_create(t->path, why) : ERR_OK;
	t->made = t->makes && e == ERR_OK;
	if (e == ERR_OK || (e == ERR_NAME_EXISTS && remote))
		e = store_open(t->path, 0, &t->store, NULL, why);
	if (e == ERR_OK)
		e = store_is_empty(t->store, &empty);
	if (e == ERR_OK && !empty)
		e = err_set(why, ERR_NAME_EXISTS, "it is not empty; a copy needs an empty store");
	return e;
}

/* Gives a new file its name.  The close cannot tell that it failed to copy the log, so the log says it. */
static enum err place(struct target *t, enum err e, struct err_detail *why)
{
	if (e == ERR_OK && store_file_has_log(t->path))
		e = err_set(why, ERR_IO, "its log could not be copied into it");
	if (e == ERR_OK)
		e = new_file_place(t->path, t->name, false);
	if (e != ERR_OK)
		store_file_remove(t->path);
	return e == ERR_OK ? new_file_sync_name(t->name) : e;
}

static enum err copy_to(struct run *r, struct store *from, const char *to, struct err_detail *why)
{
	struct target t = { .name = to };
	struct store_view *v = NULL;
	enum err e = open_target(&t, why);
	if (e == ERR_OK)
		e = store_view_hold(from, &v);
	if (e == ERR_OK) {
		e = transfer(r, from, v, t.store, why);
		store_view_close(from, v);
	}
	if (r->counts.left && !t.made)
		(void)fprintf(stderr, "a part of the copy is left in '%s'\n", to);
	store_close(t.store);
	return t.made ? place(&t, e, why) : e;
}

static enum err tell(const struct run *r, const char *from, const char *to, bool json)
{
	const struct store_transfer_counts *n = &r->counts;
	char items[NUMBER_MAX], bytes[NUMBER_MAX];
	if (!json) {
		fprintf(stderr, "%s is a copy of %s: %s item%s, %s in %.1f s\n", to, from,
			number_text(n->items, items), n->items == 1 ? "" : "s",
			size_text(n->bytes, bytes), progress_seconds(&r->progress));
		return ERR_OK;
	}
	struct json_build b;
	json_begin(&b);
	json_add_count(&b, "items", n->items);
	json_add_count(&b, "bytes", n->bytes);
	return json_end_print(&b, stdout);
}

int whole_store_copy(const char *command, const char *from, const char *to, bool json)
{
	const struct cmd_env env = {
		.err = stderr, .err_fd = STDERR_FILENO, .cancelled = signals_cancelled
	};
	struct run r = { .env = &env };
	struct err_detail why = { 0 };
	struct store *source;
	signals_catch(command);
	enum err e = store_open(from, STORE_OPEN_READ_ONLY, &source, NULL, &why);
	if (e == ERR_BUSY)
		return command_fail(stderr, command, "'%s': %s. Copy a backup of it: rowfs backup",
			from, err_message(e, &why));
	if (e != ERR_OK)
		return command_fail(
			stderr, command, "cannot open '%s': %s", from, err_message(e, &why));
	e = copy_to(&r, source, to, &why);
	store_close(source);
	if (e == ERR_CANCELLED)
		return command_fail(stderr, command, "cancelled");
	if (e != ERR_OK)
		return command_fail(stderr, command, "cannot copy '%s' to '%s': %s", from, to,
			err_message(e, &why));
	e = tell(&r, from, to, json);
	return e == ERR_OK ? EXIT_DONE
			   : command_fail(stderr, command, "'%s' is made: %s", to, err_text(e));
}
