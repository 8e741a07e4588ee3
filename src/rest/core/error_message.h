/* SPDX-License-Identifier: MIT
 * The text of an error, which each service wraps in its own form (protocol section 8). */
#ifndef REST_CORE_ERROR_MESSAGE_H
#define REST_CORE_ERROR_MESSAGE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

#define ERROR_MESSAGE_LIMIT 4096

/* Appends the text of an error to an empty buffer, as valid UTF-8, with RequestId and Time.  detail
 * may be NULL.  indexed: in a change set, so the text begins with detail->op. */
void error_message(enum err e, const struct err_detail *detail, bool indexed,
	const char *request_id, struct buf *out);

#endif
