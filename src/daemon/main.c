/* SPDX-License-Identifier: MIT
 * The program: finds the command and runs it, here or where the store is served. */
#include "base/memory.h"
#include "daemon/commands/table.h"
#include "daemon/core/secret.h"
#include "daemon/serve/run.h"

#include <fcntl.h>
#include <nss.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int usage(int argc, char **argv)
{
	if (argc < 1) {
		command_help_all(&command_table, NULL, stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
		command_help_all(&command_table, NULL, stdout);
		return EXIT_DONE;
	}
	if (command_group(&command_table, argv[0])) {
		bool help =
			argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
		const char *meant = help ? NULL : command_suggest(&command_table, argc, argv);
		if (meant != NULL && argc > 1)
			fprintf(stderr,
				"rowfs: there is no command '%s %s'; did you mean: rowfs %s\n",
				argv[0], argv[1], meant);
		else if (!help && argc > 1)
			fprintf(stderr, "rowfs: there is no command '%s %s'; there are:\n", argv[0],
				argv[1]);
		command_help_all(&command_table, argv[0], help ? stdout : stderr);
		return help ? EXIT_DONE : EXIT_USAGE;
	}
	const char *meant = command_suggest(&command_table, argc, argv);
	fprintf(stderr, "rowfs: there is no command '%s'; %s%s\n", argv[0],
		meant != NULL ? "did you mean: rowfs " : "see: rowfs help",
		meant != NULL ? meant : "");
	return EXIT_USAGE;
}

/* Files of a command travel to the serving process and need descriptors on both sides. */
static void raise_file_limit(void)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max < 65536 ? r.rlim_max : 65536;
		(void)setrlimit(RLIMIT_NOFILE, &r);
	}
}

static int run(const struct command *c, int words, int argc, char **argv)
{
	struct args args;
	int code = EXIT_USAGE;
	if (command_parse(c, argc - words, argv + words, &args, stderr)) {
		args.table = &command_table;
		if (args.help) {
			command_help(c, stdout);
			code = EXIT_DONE;
		} else if (c->local != NULL) {
			code = c->local(&args);
		} else {
			code = run_data_command(c, &args, argc, argv);
		}
	}
	args_fini(&args);
	if (fflush(stdout) != 0 && code == EXIT_DONE)
		code = EXIT_FAILED;
	return code;
}

/* Where the caller closed a standard stream, the store would get its number, and messages
 * would be written into the store. */
static bool fill_standard_streams(void)
{
	int fd;
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		(void)close(fd);
	return fd >= 0;
}

/* A static program cannot load plug-ins of the system's C library, which has another version.  So it finds
 * users in /etc/passwd only, and hosts in /etc/hosts and by DNS. */
static void name_lookup_without_plugins(void)
{
#ifdef STATIC_PROGRAM
	(void)__nss_configure_lookup("passwd", "files");
	(void)__nss_configure_lookup("hosts", "files dns");
#endif
}

int main(int argc, char **argv)
{
	int words;
	name_lookup_without_plugins();
	secret_no_core();
	memory_set_up();
	if (!fill_standard_streams())
		return EXIT_FAILED;
	argc--;
	argv++;
	if (!secret_hide_key(argc, argv))
		return EXIT_FAILED;
	(void)signal(SIGPIPE, SIG_IGN);
	raise_file_limit();
	static char version[] = "version";
	if (argc >= 1 && strcmp(argv[0], "--version") == 0)
		argv[0] = version;
	const struct command *c = command_find(&command_table, argc, argv, &words);
	return c != NULL ? run(c, words, argc, argv) : usage(argc, argv);
}
