/* SPDX-License-Identifier: MIT
 * The progress line on a terminal, and numbers as people read them. */
#ifndef DAEMON_CORE_PROGRESS_H
#define DAEMON_CORE_PROGRESS_H

#include "daemon/core/command.h"
#include "service/check/verify.h"

struct progress {
	FILE *to; /* NULL: not a terminal, nothing is shown */
	int fd;
	const char *unit; /* "rows"; NULL: bytes, which are shown as sizes */
	uint64_t started_us, shown_us;
	int shown;               /* characters of the line on the terminal */
	enum verify_phase phase; /* of progress_verify() */
};

/* Shows nothing where env->err is no terminal. */
void progress_start(struct progress *p, const struct cmd_env *env, const char *unit);
/* count: how many units so far; part of whole: how far (whole 0: not known).  Draws a few
 * times a second. */
void progress_show(struct progress *p, uint64_t count, uint64_t part, uint64_t whole);
/* The same for service_verify(): each phase has a rate, a unit and a time left of its own.  That of VERIFY_ITEMS
 * is the unit of progress_start(). */
void progress_verify(struct progress *p, enum verify_phase phase, uint64_t done, uint64_t total);
/* Wipes the line: before another message, and at the end. */
void progress_clear(struct progress *p);
double progress_seconds(const struct progress *p);

#define NUMBER_MAX 32
/* "1,234,567" */
const char *number_text(uint64_t n, char out[NUMBER_MAX]);
/* "1.2 MiB" */
const char *size_text(uint64_t bytes, char out[NUMBER_MAX]);

#endif
