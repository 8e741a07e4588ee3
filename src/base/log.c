/* SPDX-License-Identifier: MIT
 * One log line is one write(2), so that lines of several threads do not mix.  The level
 * and the destination belong to the process, hence the globals. */
#include "base/log.h"

#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <syslog.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048
/* Clients cause warnings: so many at once, and so many a second from then on. */
#define WARNINGS 1000
#define WARNINGS_SECOND 1

static atomic_int max_level = LOG_LEVEL_INFO;
static atomic_bool use_syslog;
static char syslog_ident[64]; /* openlog() keeps the pointer */

static struct {
	pthread_mutex_t lock;
	unsigned left;
	uint64_t filled_us, left_out;
} warnings = { .lock = PTHREAD_MUTEX_INITIALIZER, .left = WARNINGS };

static const struct {
	const char *mark;
	int priority;
} levels[] = {
	[LOG_LEVEL_ERROR] = { "error: ", LOG_ERR },
	[LOG_LEVEL_WARNING] = { "warning: ", LOG_WARNING },
	[LOG_LEVEL_INFO] = { "", LOG_INFO },
	[LOG_LEVEL_DEBUG] = { "debug: ", LOG_DEBUG },
};

void log_set_level(enum log_level level)
{
	atomic_store(&max_level, (int)level);
}

void log_to_syslog(const char *ident)
{
	if (ident == NULL) {
		atomic_store(&use_syslog, false);
		closelog();
		return;
	}
	(void)snprintf(syslog_ident, sizeof(syslog_ident), "%s", ident);
	openlog(syslog_ident, LOG_PID, LOG_DAEMON);
	atomic_store(&use_syslog, true);
}

/* Whatever the text holds, it stays one line and sends no escapes to a terminal. */
static void flatten(char *s)
{
	for (; *s != '\0'; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = ' ';
	}
}

static void write_stderr(enum log_level level, const char *text)
{
	char line[LINE_MAX_BYTES + 128];
	int n = snprintf(line, sizeof(line), "%s: %s%s\n", program_invocation_short_name,
		levels[level].mark, text);
	size_t len = (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1;

	if (write(STDERR_FILENO, line, len) < 0)
		return; /* nowhere left to complain */
}

static void write_line(enum log_level level, const char *text)
{
	if (atomic_load(&use_syslog))
		syslog(levels[level].priority, "%s", text);
	else
		write_stderr(level, text);
}

/* Whether a warning may be written.  *ret_left_out: how many were not, since the last one. */
static bool take_warning(uint64_t *ret_left_out)
{
	pthread_mutex_lock(&warnings.lock);
	uint64_t now = clock_mono_coarse_us();
	uint64_t more = (now - warnings.filled_us) / (UINT64_C(1000000) / WARNINGS_SECOND);
	if (more > 0) {
		uint64_t room = WARNINGS - warnings.left;
		warnings.left += (unsigned)(more < room ? more : room);
		warnings.filled_us = now;
	}
	bool may = warnings.left > 0;
	*ret_left_out = may ? warnings.left_out : 0;
	if (may) {
		warnings.left--;
		warnings.left_out = 0;
	} else {
		warnings.left_out++;
	}
	pthread_mutex_unlock(&warnings.lock);
	return may;
}

static bool is_let_out(enum log_level level)
{
	char text[64];
	uint64_t left_out = 0;

	if (level != LOG_LEVEL_WARNING)
		return true;
	if (!take_warning(&left_out))
		return false;
	if (left_out > 0) {
		(void)snprintf(
			text, sizeof(text), "%" PRIu64 " lines like these were left out", left_out);
		write_line(level, text);
	}
	return true;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];
	int saved = errno;
	va_list ap;

	if ((int)level > atomic_load(&max_level) || !is_let_out(level))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	flatten(text);
	write_line(level, text);
	errno = saved;
}
