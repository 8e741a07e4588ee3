/* SPDX-License-Identifier: MIT
 * why: the reason of the last refusal in a mount, of a name or of what is in a directory. */
#include "codec/json_build.h"
#include "daemon/core/command.h"
#include "daemon/core/signals.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#define REASON "user.rowfs.error"
#define REASON_MAX 16384

/* Where the name is: its reason is there too, where a refused name does not exist. */
static void parent_of(const char *path, char ret[PATH_MAX])
{
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		n--;
	while (n > 0 && path[n - 1] != '/')
		n--;
	(void)snprintf(ret, PATH_MAX, "%.*s", (int)n, path);
	if (n == 0)
		(void)snprintf(ret, PATH_MAX, ".");
}

/* text is CODE: MESSAGE. */
static int print_json(const char *path, struct span text)
{
	struct json_build b;
	size_t n = span_find(text, SPAN_LIT(": "));
	bool has_code = n < text.n;
	json_begin(&b);
	json_add_str(&b, "path", path);
	if (has_code)
		json_add_text(&b, "code", span_make(text.p, n));
	n = has_code ? n + 2 : 0;
	json_add_text(&b, "message", span_make(text.p + n, text.n - n));
	return json_end_print(&b, stdout) == ERR_OK
		? EXIT_DONE
		: command_fail(stderr, "why", "%s", err_text(ERR_NO_MEMORY));
}

/* Other file systems have no such attribute either. */
static bool is_in_mount(const char *path)
{
	struct statfs fs;
	char parent[PATH_MAX];
	parent_of(path, parent);
	return (statfs(path, &fs) == 0 || statfs(parent, &fs) == 0) &&
		fs.f_type == FUSE_SUPER_MAGIC;
}

static int run(const struct args *args)
{
	const char *path = args->nwords > 0 ? args->words[0] : ".";
	char text[REASON_MAX], parent[PATH_MAX];
	struct stat st;
	signals_catch("why");
	signals_wait_file(path);
	ssize_t n = lgetxattr(path, REASON, text, sizeof(text));
	if (n < 0 && errno == ENOENT) {
		parent_of(path, parent);
		n = lgetxattr(parent, REASON, text, sizeof(text));
	}
	int code = n < 0 ? errno : 0;
	bool there = lstat(path, &st) == 0;
	if (code == ENODATA && !is_in_mount(path))
		code = EOPNOTSUPP;
	signals_go_on();
	if (n >= 0 && args_has(args, "json"))
		return print_json(path, span_make(text, (size_t)n));
	if (n >= 0) {
		printf("%.*s\n", (int)n, text);
		return EXIT_DONE;
	}
	if (code == ENODATA && there)
		return command_fail(
			stderr, "why", "'%s': nothing was refused since the last success", path);
	if (code == ENODATA)
		return command_fail(
			stderr, "why", "'%s' does not exist, and nothing was refused", path);
	if (code == EOPNOTSUPP)
		return command_fail(stderr, "why", "'%s' is not in a mount of rowfs", path);
	return command_fail(stderr, "why", "'%s': %s", path, strerrordesc_np(code));
}

static const struct option_spec options[] = {
	{ "json", 0, NULL, "print an object: path, code and message" },
	{ NULL },
};

const struct command command_why = {
	.name = "why",
	.topic = TOPIC_ROWS,
	.synopsis = "[PATH] [--json]",
	.summary = "Tells why the last change in a mount was refused",
	.help = "PATH is a file or a directory in a mount; of a directory, or of a name that does not\n"
		"exist: the last refusal there.  Without PATH: in this directory.\n",
	.options = options,
	.max_words = 1,
	.local = run,
};
