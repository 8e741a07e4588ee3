/* SPDX-License-Identifier: MIT
 * Log lines to stderr or syslog.  Floors below the doors do not log: they return
 * errors.  Never hand a secret to these functions.
 *
 * What a client may cause is a warning: of these 1,000 are written at once and one a second
 * from then on, so that nobody fills the disk with them. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/compiler.h"

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG
};

void log_set_level(enum log_level level);
/* From now on to syslog(3) with this name; NULL: stderr again. */
void log_to_syslog(const char *ident);
void log_line(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
