/* SPDX-License-Identifier: MIT
 * Writes a stream of rows to the output of a command, with progress: `export` and `query`. */
#ifndef DAEMON_CORE_ROWS_OUT_H
#define DAEMON_CORE_ROWS_OUT_H

#include "daemon/core/command.h"
#include "service/query/row_stream.h"

/* Writes all of the stream.  aligned: the stream is CSV, and is shown as columns for people.  The
 * output must be flushed: an error of it is an error of this call. */
enum err rows_out(
	struct cmd_env *env, struct row_stream *stream, bool aligned, struct err_detail *why);
/* Flushes the output.  The error has its text. */
enum err rows_out_flush(struct cmd_env *env, struct err_detail *why);
/* Returns the error of the output that errno tells. */
enum err rows_out_error(struct err_detail *why);
/* Whether a failure needs no message: the reader of the output has had enough (head). */
bool rows_out_reader_left(const struct cmd_env *env);

#endif
