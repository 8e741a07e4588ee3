/* SPDX-License-Identifier: MIT
 * Requests that are no HTTP, or that two programs could read in two ways.  libmicrohttpd judges some of
 * them itself, before it calls a handler: it answers with a page of its own, some with two heads,
 * and a chunk's line that is too long with 500.  Here they get one answer of ours, and the end. */
#ifndef REST_MALFORMED_H
#define REST_MALFORMED_H

#include "rest/connection.h"

#include <stdarg.h>

/* A message of the library.  Before it answers an error it tells its status here: then our answer is
 * sent and the socket shut, so that the library's own goes nowhere. */
void malformed_on_message(struct rest *r, const char *fmt, va_list args) PRINTF_LIKE(2, 0);
/* Whether each line of the head ends in CR LF and no value holds a NUL, at which the library has
 * cut it.  method and version as the handler got them. */
bool head_is_well_formed(const struct connection *c, const char *method, const char *version);

#endif
