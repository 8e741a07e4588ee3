/* SPDX-License-Identifier: MIT
 * The access log: a line for each answered request.  The format is in docs/operating.md.
 *
 * A server without the log pays one comparison a request.  With it, requests add their line to
 * memory and never wait for the file (base/line_writer.h). */
#ifndef REST_HTTP_ACCESS_LOG_H
#define REST_HTTP_ACCESS_LOG_H

#include "rest/http/access_line.h"
#include "rest/rest.h"

struct access_log;

/* Opens the log.  The options must outlive it.  Errors of line_writer_open(). */
enum err access_log_open(
	const struct rest_access_log *options, struct access_log **ret, struct err_detail *detail);
/* Opens the file again.  On an error the old one stays. */
enum err access_log_reopen(struct access_log *log, struct err_detail *detail);
/* Writes what waits.  NULL is allowed. */
void access_log_close(struct access_log *log);

/* Begins a request.  *a is the memory of a connection's line, which the first request allocates; the
 * caller frees it with free(3).  It stays NULL if there is no memory: then the request has no line. */
void access_log_begin(struct access_log *log, struct access_line **a);
/* Ends a request whose response was sent (whole) or cut off, and writes its line if the options want
 * it.  Any thread may call it. */
void access_log_end(struct access_log *log, struct access_line *a, bool whole);

#endif
