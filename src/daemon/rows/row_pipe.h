/* SPDX-License-Identifier: MIT
 * Rows to and from other processes of rowfs: `rowfs query` is read, `rowfs import` is written to.  So both
 * sides of a copy can be any store, closed or served, or an account elsewhere.  One thread at a time. */
#ifndef DAEMON_ROWS_ROW_PIPE_H
#define DAEMON_ROWS_ROW_PIPE_H

#include "base/buf.h"
#include "base/err.h"
#include "model/entity.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* The output of `rowfs query --format=json`.  Its last line tells that no row is missing. */
struct row_reader {
	FILE *in;
	pid_t child;
	char *text; /* the line that was read last */
	size_t room;
	/* Results of row_reader_next(). */
	bool ended;
	struct span line;     /* of the row, without comma and line end */
	struct entity entity; /* borrows from the line */
	struct buf key;       /* memcmp() of two keys is the order of the rows */
	uint64_t rows;
};

/* Starts the process; argv without the program's name, with a NULL at its end.  Call row_reader_end() also
 * after an error.  ERR_IO and its like, with the reason. */
enum err row_reader_start(struct row_reader *r, const char *const *argv, struct err_detail *why);
/* Reads the next row, which is valid until the next call; ended is true behind the last one.  ERR_IO: the
 * output ended early, after a message of the process.  ERR_INVALID_INPUT: the rows are not in the order
 * of their keys.  ERR_NO_MEMORY. */
enum err row_reader_next(struct row_reader *r, struct err_detail *why);
/* Reads no more: the process that writes the rows ends. */
void row_reader_stop(struct row_reader *r);
/* Returns the exit code of the process; after an early end it is stopped first. */
int row_reader_end(struct row_reader *r);

/* The input of `rowfs import`. */
struct row_writer {
	FILE *out;
	pid_t child;
};

/* Starts the process, as row_reader_start(). */
enum err row_writer_start(struct row_writer *w, const char *const *argv, struct err_detail *why);
/* Sends a line.  ERR_IO: the process has ended, after a message of its own. */
enum err row_writer_add(struct row_writer *w, struct span line, struct err_detail *why);
/* Ends the input, and returns the exit code; 0 if none was started. */
int row_writer_end(struct row_writer *w);

#endif
