/* SPDX-License-Identifier: MIT
 * Requests that are not valid HTTP, or that two programs could read differently.  MHD checks some
 * of them before it calls a handler.  Its own responses are unusable: some have two heads, and an
 * overlong chunk line gets 500.  Here such a request gets one response, and the connection is
 * closed. */
#ifndef REST_HTTP_MALFORMED_H
#define REST_HTTP_MALFORMED_H

#include "rest/http/connection.h"

#include <stdarg.h>

/* Handles a log message of MHD.  MHD logs an error with its status before it responds.  This
 * function then sends a response and shuts the socket down, so that MHD's response goes nowhere. */
void malformed_on_message(struct rest *r, const char *fmt, va_list args) PRINTF_LIKE(2, 0);
/* Returns true if each line of the head ends in CR LF and no value contains NUL, where MHD cut it.
 * method and version are the handler's arguments. */
bool head_is_well_formed(const struct connection *c, const char *method, const char *version);

#endif
