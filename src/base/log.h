/* SPDX-License-Identifier: MIT
 * Log lines to stderr or syslog.  Floors below the doors do not log: they return
 * errors.  Never hand a secret to these functions.
 *
 * Clients can cause warnings alone.  Each kind and source may write 1,000 of them at once and one a second
 * from then on, so that nobody fills the disk or silences the others.  16
 * sources of a kind have a budget of their own at a time; the others share one. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/compiler.h"

#include <stdint.h>

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG
};

/* Of warnings. */
enum log_kind {
	LOG_KIND_OWN, /* what the process itself met with */
	LOG_KIND_COMMAND,
	LOG_KIND_MOUNT,
	LOG_KIND_REST,
	LOG_KINDS_
};

void log_set_level(enum log_level level);
/* From now on to syslog(3) with this name; NULL: stderr again. */
void log_to_syslog(const char *ident);
/* A warning is of LOG_KIND_OWN. */
void log_line(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A warning that a client caused.  source: a number that its other warnings of this kind have too,
 * such as a user id. */
void log_client(enum log_kind kind, uint64_t source, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Such a number for a text, such as an address. */
uint64_t log_source(const char *text);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
