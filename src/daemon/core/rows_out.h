/* SPDX-License-Identifier: MIT
 * Writes a stream of rows to the output of a command, with progress: `export` and `query`. */
#ifndef DAEMON_CORE_ROWS_OUT_H
#define DAEMON_CORE_ROWS_OUT_H

#include "daemon/core/command.h"
#include "service/query/row_stream.h"

/* Text of rows, from wherever they are. */
struct row_source {
	/* As row_stream_read(), forward only. */
	enum err (*read)(struct row_source *s, uint64_t offset, size_t n, row_stream_asked_fn asked,
		void *arg, struct buf *out, struct err_detail *why);
	/* Returns the number of rows so far. */
	uint64_t (*rows)(const struct row_source *s);
	void (*close)(struct row_source *s);
};

enum rows_out_flags {
	ROWS_OUT_ALIGNED = 1, /* the text is CSV, and is shown as columns for people */
	ROWS_OUT_QUIET = 2,   /* no progress */
};

/* Writes all of the source, of which `expected` rows are expected; 0: not known.  The output must be flushed: an error of it is an error of this call. */
enum err rows_out(struct cmd_env *env, struct row_source *source, uint64_t expected, unsigned flags,
	struct err_detail *why);
/* Flushes the output.  The error has its text. */
enum err rows_out_flush(struct cmd_env *env, struct err_detail *why);
/* Returns the error of the output that errno tells. */
enum err rows_out_error(struct err_detail *why);
/* Whether a failure needs no message: the reader of the output has had enough (head). */
bool rows_out_reader_left(const struct cmd_env *env);

#endif
