/* SPDX-License-Identifier: MIT
 * Each line is one write(2), so that lines of several threads do not mix.  The level and the
 * destination belong to the process and are global. */
#include "base/log.h"

#include "base/clock.h"
#include "base/lock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048
#define BEGIN_MAX (CLOCK_TEXT_MAX + 1)
/* The budget of warnings that clients cause: a burst, then so many a second. */
#define WARNINGS 1000
#define WARNINGS_SECOND 1
#define SOURCES 16 /* per kind, with a budget of their own */

static atomic_int max_level = LOG_LEVEL_INFO;
static atomic_int form = LOG_FORM_PLAIN;
static atomic_bool use_syslog, use_colour;
static char syslog_ident[64]; /* openlog(3) does not copy it */

struct budget {
	uint64_t source;
	unsigned spent; /* of WARNINGS; 0: the slot is free */
	uint64_t filled_us, left_out;
};

static struct {
	struct mutex lock;
	struct budget of[LOG_KINDS_][SOURCES + 1]; /* the last one is shared */
} warnings = { .lock = MUTEX_INIT(RANK_LOG) };

static const struct {
	const char *name, *mark;
	int priority;
	const char *colour; /* "": none */
} levels[] = {
	[LOG_LEVEL_ERROR] = { "error", "error: ", LOG_ERR, "\033[31m" },
	[LOG_LEVEL_WARNING] = { "warning", "warning: ", LOG_WARNING, "\033[33m" },
	[LOG_LEVEL_INFO] = { "info", "", LOG_INFO, "" },
	[LOG_LEVEL_DEBUG] = { "debug", "debug: ", LOG_DEBUG, "" },
};

void log_set_level(enum log_level level)
{
	atomic_store(&max_level, (int)level);
}

bool log_level_parse(const char *name, enum log_level *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
		if (strcmp(levels[i].name, name) == 0) {
			*ret = (enum log_level)i;
			return true;
		}
	}
	return false;
}

void log_set_colour(bool on)
{
	atomic_store(&use_colour, on);
}

void log_set_form(enum log_form chosen)
{
	atomic_store(&form, (int)chosen);
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

/* Replaces control characters: the text stays one line and sends no escapes to a terminal. */
static void flatten(char *s)
{
	for (; *s != '\0'; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = ' ';
	}
}

static void begin_line(enum log_level level, char out[BEGIN_MAX])
{
	char time[CLOCK_TEXT_MAX];

	out[0] = '\0';
	switch ((enum log_form)atomic_load(&form)) {
	case LOG_FORM_PLAIN:
		return;
	case LOG_FORM_TIMED:
		(void)clock_format_full(clock_ticks(), time);
		(void)snprintf(out, BEGIN_MAX, "%s ", time);
		return;
	case LOG_FORM_JOURNAL:
		(void)snprintf(out, BEGIN_MAX, "<%d>", levels[level].priority);
		return;
	}
}

static void write_stderr(enum log_level level, const char *text)
{
	char begin[BEGIN_MAX], line[LINE_MAX_BYTES + 128];
	const char *colour = atomic_load(&use_colour) ? levels[level].colour : "";
	begin_line(level, begin);
	int n = snprintf(line, sizeof(line), "%s%s: %s%s%s%s\n", begin,
		program_invocation_short_name, colour, levels[level].mark,
		colour[0] != '\0' ? "\033[0m" : "", text);
	size_t len = (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1;

	if (write(STDERR_FILENO, line, len) < 0)
		return; /* there is no other place to report it */
}

static void write_line(enum log_level level, const char *text)
{
	if (atomic_load(&use_syslog))
		syslog(levels[level].priority, "%s", text);
	else
		write_stderr(level, text);
}

static void refill(struct budget *b, uint64_t now)
{
	uint64_t more = (now - b->filled_us) / (UINT64_C(1000000) / WARNINGS_SECOND);
	if (more == 0)
		return;
	b->spent -= (unsigned)(more < b->spent ? more : b->spent);
	b->filled_us = now;
}

static struct budget *find(enum log_kind kind, uint64_t source, uint64_t now)
{
	struct budget *all = warnings.of[kind], *free = &all[SOURCES];
	for (size_t i = 0; i <= SOURCES; i++)
		refill(&all[i], now);
	for (size_t i = 0; i < SOURCES; i++) {
		if (all[i].spent > 0 && all[i].source == source)
			return &all[i];
		if (all[i].spent == 0 && free == &all[SOURCES])
			free = &all[i];
	}
	free->source = source;
	return free;
}

/* Returns true if the budget allows a warning.  *ret_left_out counts those that it suppressed since
 * the last one. */
static bool take_warning(enum log_kind kind, uint64_t source, uint64_t *ret_left_out)
{
	mutex_lock(&warnings.lock);
	struct budget *b = find(kind, source, clock_mono_coarse_us());
	bool may = b->spent < WARNINGS;
	*ret_left_out = may ? b->left_out : 0;
	if (may) {
		b->spent++;
		b->left_out = 0;
	} else {
		b->left_out++;
	}
	mutex_unlock(&warnings.lock);
	return may;
}

static bool is_let_out(enum log_kind kind, uint64_t source)
{
	char text[64];
	uint64_t left_out = 0;

	if (!take_warning(kind, source, &left_out))
		return false;
	if (left_out > 0) {
		(void)snprintf(
			text, sizeof(text), "%" PRIu64 " lines like these were left out", left_out);
		write_line(LOG_LEVEL_WARNING, text);
	}
	return true;
}

static void PRINTF_LIKE(2, 0) write_text(enum log_level level, const char *fmt, va_list ap)
{
	char text[LINE_MAX_BYTES];

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	flatten(text);
	write_line(level, text);
}

void log_line(enum log_level level, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if ((int)level > atomic_load(&max_level) ||
		(level == LOG_LEVEL_WARNING && !is_let_out(LOG_KIND_OWN, 0)))
		return;
	va_start(ap, fmt);
	write_text(level, fmt, ap);
	va_end(ap);
	errno = saved;
}

void log_client(enum log_kind kind, uint64_t source, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (LOG_LEVEL_WARNING > atomic_load(&max_level) || !is_let_out(kind, source))
		return;
	va_start(ap, fmt);
	write_text(LOG_LEVEL_WARNING, fmt, ap);
	va_end(ap);
	errno = saved;
}

/* FNV-1a. */
uint64_t log_source(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text != '\0'; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h;
}
