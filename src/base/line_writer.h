/* SPDX-License-Identifier: MIT
 * A file that grows by whole lines, written by a thread of its own.  So callers never wait for the
 * disk.  Lines that wait for it take LINE_WRITER_ROOM bytes at most; the lines beyond that are
 * left out, counted, and told in the log of the process (base/log.h). */
#ifndef BASE_LINE_WRITER_H
#define BASE_LINE_WRITER_H

#include "base/err.h"
#include "base/span.h"

#define LINE_WRITER_ROOM ((size_t)1 << 20)

struct line_writer;

/* Opens a file to append to, and makes it with mode 0640; "-" is the standard output.  The strings
 * must outlive the writer.  name begins the messages, as "access log".  ERR_NO_MEMORY, or
 * the error of open(2) with the reason; a FIFO that nobody reads is one. */
enum err line_writer_open(
	const char *name, const char *path, struct line_writer **ret, struct err_detail *detail);
/* Adds a line with its line end.  Takes a lock for the time of a copy.  Any thread may call it. */
void line_writer_add(struct line_writer *w, struct span line);
/* Opens the file again, since its name may have another one now.  On an error the old one stays.
 * One thread at a time may call it. */
enum err line_writer_reopen(struct line_writer *w, struct err_detail *detail);
/* Writes the lines that wait, for a second at most if a reader of a pipe blocks, and frees w.  NULL
 * is allowed. */
void line_writer_close(struct line_writer *w);

#endif
