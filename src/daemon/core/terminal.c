/* SPDX-License-Identifier: MIT */
#include "daemon/core/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char dumb_word[] = "TERM=dumb", no_colour_word[] = "NO_COLOR=1";

static bool is_set(const char *value)
{
	return value != NULL && value[0] != '\0';
}

struct terminal terminal_here(void)
{
	const char *term = getenv("TERM");
	bool dumb = is_set(term) && strcmp(term, "dumb") == 0;
	return (struct terminal){ dumb, dumb || !is_set(term) || is_set(getenv("NO_COLOR")) };
}

const char *terminal_word(const struct terminal *t)
{
	if (isatty(STDOUT_FILENO) == 0 && isatty(STDERR_FILENO) == 0)
		return NULL;
	return t->dumb ? dumb_word : t->no_colour ? no_colour_word : NULL;
}

bool terminal_describes(int argc, char *const *argv)
{
	int left = argc;
	(void)terminal_take(&left, &argv);
	return left < argc;
}

struct terminal terminal_take(int *argc, char *const **argv)
{
	struct terminal t = { 0 };
	for (; *argc > 0; --*argc, ++*argv) {
		bool dumb = strcmp(**argv, dumb_word) == 0;
		if (!dumb && strcmp(**argv, no_colour_word) != 0)
			break;
		t.dumb = t.dumb || dumb;
		t.no_colour = true;
	}
	return t;
}

bool terminal_clears(const struct terminal *t, int fd)
{
	return !t->dumb && isatty(fd) != 0;
}

struct palette terminal_palette(const struct terminal *t, int fd)
{
	static const struct palette none = { "", "", "", "", "" };
	static const struct palette usual = { "\033[1m", "\033[32m", "\033[33m", "\033[31m",
		"\033[0m" };
	return !t->no_colour && isatty(fd) != 0 ? usual : none;
}
