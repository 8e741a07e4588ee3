/* SPDX-License-Identifier: MIT
 * why: the reason of the last refusal in a mount, of a name or of what is in a directory. */
#include "daemon/core/command.h"
#include "daemon/core/signals.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
	signals_go_on();
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

const struct command command_why = {
	.name = "why",
	.topic = TOPIC_ROWS,
	.synopsis = "[PATH]",
	.summary = "Tells why the last change in a mount was refused",
	.help = "PATH is a file or a directory in a mount; of a directory, or of a name that does not\n"
		"exist: the last refusal there.  Without PATH: in this directory.\n",
	.max_words = 1,
	.local = run,
};
