/* SPDX-License-Identifier: MIT */
#include "rest/http/access_log.h"

#include "base/clock.h"
#include "base/line_writer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES ((size_t)4096)

struct access_log {
	const struct rest_access_log *options;
	struct line_writer *writer;
	atomic_uint_least64_t count; /* of requests of which one in options->sample is written */
};

enum err access_log_open(
	const struct rest_access_log *options, struct access_log **ret, struct err_detail *detail)
{
	struct access_log *log = calloc(1, sizeof(*log));
	if (log == NULL)
		return ERR_NO_MEMORY;
	log->options = options;
	enum err e = line_writer_open("access log", options->path, &log->writer, detail);
	if (e == ERR_OK)
		*ret = log;
	else
		free(log);
	return e;
}

enum err access_log_reopen(struct access_log *log, struct err_detail *detail)
{
	return line_writer_reopen(log->writer, detail);
}

void access_log_close(struct access_log *log)
{
	if (log == NULL)
		return;
	line_writer_close(log->writer);
	free(log);
}

void access_log_begin(struct access_log *log, struct access_line **a)
{
	if (log == NULL)
		return;
	if (*a == NULL)
		*a = malloc(sizeof(**a));
	if (*a == NULL)
		return;
	memset(*a, 0, sizeof(**a));
	(*a)->began_us = clock_mono_us();
	(*a)->began_ticks = clock_ticks();
}

/* Slow requests come first: a sample is one of the others. */
static bool is_wanted(struct access_log *log, uint64_t us)
{
	const struct rest_access_log *o = log->options;
	if (o->slow_ms != 0 && us >= (uint64_t)o->slow_ms * 1000)
		return true;
	if (o->sample != 0)
		return atomic_fetch_add(&log->count, 1) % o->sample == 0;
	return o->slow_ms == 0;
}

void access_log_end(struct access_log *log, struct access_line *a, bool whole)
{
	if (a == NULL || !a->answered)
		return;
	uint64_t us = clock_mono_us() - a->began_us;
	a->answered = false;
	if (!is_wanted(log, us))
		return;
	struct buf line = BUF_INIT(LINE_MAX_BYTES);
	if (log->options->json)
		access_line_json(a, us, whole, &line);
	else
		access_line_combined(a, us, &line);
	if (buf_ok(&line))
		line_writer_add(log->writer, buf_span(&line));
	buf_fini(&line);
}
