/* SPDX-License-Identifier: MIT */
#include "daemon/core/secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define OPTION "--key"
#define OPTION_LEN (sizeof(OPTION) - 1)
/* The longest key has 88 characters in base64. */
#define LINE_MAX_BYTES 512

void secret_no_core(void)
{
	/* It fails for no reason that there is. */
	(void)prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
}

/* Byte by byte: what follows the line is somebody else's. */
static bool read_line(char line[LINE_MAX_BYTES])
{
	size_t n = 0;
	(void)setvbuf(stdin, NULL, _IONBF, 0);
	for (int c; n < LINE_MAX_BYTES - 1 && (c = getchar()) != EOF && c != '\n';)
		line[n++] = (char)c;
	if (n > 0 && line[n - 1] == '\r')
		n--;
	line[n] = '\0';
	return n > 0;
}

/* arg: the option with its value behind `prefix` bytes, or the value alone. */
static bool hide(char **arg, size_t prefix)
{
	char line[LINE_MAX_BYTES];
	char *value = *arg + prefix, *copy = NULL;
	if (strcmp(value, "-") != 0) {
		copy = strdup(*arg);
		memset(value, '*', strlen(value));
	} else if (!read_line(line)) {
		fprintf(stderr, "rowfs account add: there is no key on standard input\n");
		return false;
	} else if (asprintf(&copy, "%.*s%s", (int)prefix, *arg, line) < 0) {
		copy = NULL;
	}
	explicit_bzero(line, sizeof(line));
	if (copy == NULL) {
		fprintf(stderr, "rowfs account add: out of memory\n");
		return false;
	}
	*arg = copy;
	return true;
}

bool secret_hide_key(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[0], "account") != 0 || strcmp(argv[1], "add") != 0)
		return true;
	for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) {
		bool alone = strcmp(argv[i], OPTION) == 0;
		if (alone && i + 1 < argc) {
			if (!hide(&argv[++i], 0))
				return false;
		} else if (!alone && strncmp(argv[i], OPTION "=", OPTION_LEN + 1) == 0) {
			if (!hide(&argv[i], OPTION_LEN + 1))
				return false;
		}
	}
	return true;
}
