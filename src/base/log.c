/* SPDX-License-Identifier: MIT
 * One log line is one write(2), so that lines of several threads do not mix.  The level
 * and the destination belong to the process, hence the globals. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <syslog.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048

static atomic_int max_level = LOG_LEVEL_INFO;
static atomic_bool use_syslog;
static char syslog_ident[64]; /* openlog() keeps the pointer */

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

void log_line(enum log_level level, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];
	int saved = errno;
	va_list ap;

	if ((int)level > atomic_load(&max_level))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	flatten(text);
	if (atomic_load(&use_syslog))
		syslog(levels[level].priority, "%s", text);
	else
		write_stderr(level, text);
	errno = saved;
}
