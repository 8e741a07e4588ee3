/* SPDX-License-Identifier: MIT
 * base/log.h, and BUG_ON, which speaks through it.  stderr is a pipe here. */
#include "base/clock.h"
#include "base/log.h"
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static char seen[65536];

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

static void journal_lines(void)
{
	log_set_form(LOG_FORM_JOURNAL);
	log_set_level(LOG_LEVEL_DEBUG);
	log_error("e");
	log_warning("w");
	log_info("i");
	log_debug("d");
}

TEST(lines_for_the_journal_begin_with_their_priority)
{
	CHECK_EQ_INT(capture(journal_lines), 0);
	CHECK_EQ_STR(seen,
		"<3>test_log: error: e\n<4>test_log: warning: w\n<6>test_log: i\n"
		"<7>test_log: debug: d\n");
}

static int64_t fixed_time(void)
{
	return TICKS_UNIX_EPOCH + 15 * TICKS_PER_SECOND / 10;
}

static void timed_lines(void)
{
	clock_set_source(fixed_time);
	log_set_form(LOG_FORM_TIMED);
	log_error("e");
	log_set_form(LOG_FORM_PLAIN);
	log_error("e");
}

TEST(timed_lines_begin_with_the_time)
{
	CHECK_EQ_INT(capture(timed_lines), 0);
	CHECK_EQ_STR(seen, "1970-01-01T00:00:01.5000000Z test_log: error: e\ntest_log: error: e\n");
}

static void coloured_lines(void)
{
	log_set_colour(true);
	log_set_level(LOG_LEVEL_DEBUG);
	log_error("e");
	log_warning("w");
	log_info("i");
	log_debug("d");
	log_set_colour(false);
	log_error("e");
}

TEST(errors_and_warnings_are_coloured_on_request)
{
	CHECK_EQ_INT(capture(coloured_lines), 0);
	CHECK_EQ_STR(seen,
		"test_log: \033[31merror: \033[0me\ntest_log: \033[33mwarning: \033[0mw\n"
		"test_log: i\ntest_log: debug: d\ntest_log: error: e\n");
}

TEST(each_level_has_a_name)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	enum log_level level = LOG_LEVEL_INFO;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CHECK(log_level_parse(names[i], &level));
		CHECK_EQ_INT(level, i);
	}
	CHECK(!log_level_parse("", &level) && !log_level_parse("Info", &level));
	CHECK_EQ_INT(level, LOG_LEVEL_DEBUG);
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

static void many_warnings(void)
{
	for (int i = 0; i < 1005; i++)
		log_client(LOG_KIND_COMMAND, 7, "%s", "");
	log_client(LOG_KIND_COMMAND, 8, "another source");
	log_client(LOG_KIND_REST, 7, "another kind");
	log_warning("its own");
	for (uint64_t i = 0; i < 40; i++)
		log_client(LOG_KIND_MOUNT, i, "source %d", (int)i);
}

/* Lines of stderr with this end. */
static int count(const char *end)
{
	int n = 0;
	for (char *at = seen; (at = strstr(at, end)) != NULL; at++)
		n++;
	return n;
}

TEST(warnings_have_a_budget_by_kind_and_source)
{
	CHECK_EQ_INT(capture(many_warnings), 0);
	int silent = count("test_log: warning: \n");
	CHECK(silent == 1000 || silent == 1001); /* a second may have passed */
	CHECK_EQ_INT(count("another source\n"), 1);
	CHECK_EQ_INT(count("another kind\n"), 1);
	CHECK_EQ_INT(count("its own\n"), 1);
	CHECK_EQ_INT(count("warning: source "), 40);
}

static void too_many_sources(void)
{
	for (uint64_t i = 0; i < 16; i++)
		for (int k = 0; k < 2; k++)
			log_client(LOG_KIND_MOUNT, i, "%d", 1);
	/* One budget for all that come then. */
	for (uint64_t i = 16; i < 1020; i++)
		log_client(LOG_KIND_MOUNT, i, "%s", "");
	log_client(LOG_KIND_MOUNT, 3, "known before");
}

TEST(sources_beyond_16_share_a_budget)
{
	CHECK_EQ_INT(capture(too_many_sources), 0);
	int silent = count("test_log: warning: \n");
	CHECK(silent >= 1000 && silent <= 1002);
	CHECK_EQ_INT(count("known before\n"), 1);
}

RUN_TESTS(T(levels_are_marked_and_filtered), T(lines_for_the_journal_begin_with_their_priority),
	T(timed_lines_begin_with_the_time), T(errors_and_warnings_are_coloured_on_request),
	T(each_level_has_a_name), T(a_line_stays_a_line_and_errno_is_kept),
	T(a_long_line_is_cut_and_ends_with_a_newline), T(a_broken_invariant_stops_the_program),
	T(warnings_have_a_budget_by_kind_and_source), T(sources_beyond_16_share_a_budget))
