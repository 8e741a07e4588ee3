/* SPDX-License-Identifier: MIT
 * ETags, such as W/"datetime'2026-11-20T12%3A29%3A19.003Z'".  They hold the row's Timestamp
 * (protocol section 3.5). */
#ifndef MODEL_ETAG_H
#define MODEL_ETAG_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define ETAG_MAX 64

/* Writes the ETag of a version and a NUL.  Returns the length. */
int etag_format(int64_t ticks, char out[ETAG_MAX]);
/* Writes the same with all 7 digits of the fraction, as Azurite has it. */
int etag_format_full(int64_t ticks, char out[ETAG_MAX]);

/* Parses the value of an If-Match header.  "*" sets *ret_any.  An ETag of this service sets
 * *ret_ticks.  Another well-formed W/"..." sets *ret_ticks to -1, which matches no row.  Anything
 * else is ERR_INVALID_INPUT. */
enum err etag_parse(struct span text, bool *ret_any, int64_t *ret_ticks, struct err_detail *detail);

#endif
