/* SPDX-License-Identifier: MIT
 * Dates as HTTP and the bodies of some answers have them. */
#ifndef CODEC_HTTP_DATE_H
#define CODEC_HTTP_DATE_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

/* Appends a date such as "Wed, 23 Oct 2013 22:05:54 GMT". */
void http_date_add(struct buf *out, int64_t ticks);
/* Parses such a date.  The weekday is not compared with the date. */
bool http_date_parse(struct span s, int64_t *ret_ticks);

#endif
