/* SPDX-License-Identifier: MIT
 * Log lines, to stderr or to syslog.  Layers below the front ends return errors and do not log.
 * Secrets must not be logged.
 *
 * Only warnings can be caused by clients, so warnings are limited: a kind and source may write
 * 1,000 at once, then one a second.  So no client fills the disk or silences the others.  In each
 * kind, 16 sources have their own budget at a time; the others share one. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG
};

/* The beginning of a line on stderr. */
enum log_form {
	LOG_FORM_PLAIN,   /* "rowfs: warning: "; the default */
	LOG_FORM_TIMED,   /* the time in UTC comes first */
	LOG_FORM_JOURNAL, /* syslog's priority comes first, as "<4>", which journald takes off */
};

/* The subject of a warning. */
enum log_kind {
	LOG_KIND_OWN, /* the process itself */
	LOG_KIND_COMMAND,
	LOG_KIND_MOUNT,
	LOG_KIND_REST,
	LOG_KINDS_
};

/* Drops lines above this level.  The default is LOG_LEVEL_INFO. */
void log_set_level(enum log_level level);
/* Finds the level of a name: "error", "warning", "info" or "debug".  Returns false for others. */
bool log_level_parse(const char *name, enum log_level *ret);
/* Chooses how lines on stderr begin. */
void log_set_form(enum log_form form);
/* Shows errors and warnings on stderr in colour, or not, which is the default. */
void log_set_colour(bool on);
/* Sends lines to syslog(3) under this name.  NULL: to stderr again. */
void log_to_syslog(const char *ident);
/* Writes a line.  A warning counts as LOG_KIND_OWN. */
void log_line(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Writes a warning that a client caused.  source identifies the client, for instance by its user
 * id. */
void log_client(enum log_kind kind, uint64_t source, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Returns a source number for a text such as an address. */
uint64_t log_source(const char *text);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
