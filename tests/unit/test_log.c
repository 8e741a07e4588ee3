/* SPDX-License-Identifier: MIT
 * base/log.h, and BUG_ON, which speaks through it.  stderr is a pipe here. */
#include "base/log.h"
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static char seen[8192];

/* What run writes to stderr; returns how its process ended. */
static int capture(void (*run)(void))
{
	int fds[2], status = -1;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	if (pipe(fds) != 0 || (pid = fork()) < 0)
		return -1;
	if (pid == 0) {
		(void)dup2(fds[1], STDERR_FILENO);
		run();
		_exit(0);
	}
	(void)close(fds[1]);
	while ((got = read(fds[0], seen + n, sizeof(seen) - 1 - n)) > 0)
		n += (size_t)got;
	seen[n] = '\0';
	(void)close(fds[0]);
	(void)waitpid(pid, &status, 0);
	return status;
}

static void some_levels(void)
{
	log_error("e%d", 1);
	log_debug("hidden");
	log_info("i");
	log_set_level(LOG_LEVEL_ERROR);
	log_warning("hidden");
	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("d");
}

TEST(levels_are_marked_and_filtered)
{
	CHECK_EQ_INT(capture(some_levels), 0);
	CHECK_EQ_STR(seen, "test_log: error: e1\ntest_log: i\ntest_log: debug: d\n");
}

static void odd_text(void)
{
	errno = 7;
	log_error("a\nb\x1b[1m");
	log_info("errno %d", errno);
}

TEST(a_line_stays_a_line_and_errno_is_kept)
{
	CHECK_EQ_INT(capture(odd_text), 0);
	CHECK_EQ_STR(seen, "test_log: error: a b [1m\ntest_log: errno 7\n");
}

static void long_text(void)
{
	log_error("%05000d", 0);
}

TEST(a_long_line_is_cut_and_ends_with_a_newline)
{
	CHECK_EQ_INT(capture(long_text), 0);
	CHECK(strlen(seen) > 2000 && strlen(seen) < 2200);
	CHECK_EQ_INT(seen[strlen(seen) - 1], '\n');
}

static int two = 2; /* not const: the compiler must not know */

static void broken_invariant(void)
{
	BUG_ON(two == 3);
	BUG_ON(two == 2);
}

TEST(a_broken_invariant_stops_the_program)
{
	int status = capture(broken_invariant);

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CHECK(strstr(seen, "internal error: two == 2 (") != NULL);
}

RUN_TESTS(T(levels_are_marked_and_filtered), T(a_line_stays_a_line_and_errno_is_kept),
	T(a_long_line_is_cut_and_ends_with_a_newline), T(a_broken_invariant_stops_the_program))
