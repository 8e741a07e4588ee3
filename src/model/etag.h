/* SPDX-License-Identifier: MIT
 * ETags: W/"datetime'2026-11-20T12%3A29%3A19.003Z'", made of the row's Timestamp
 * (protocol section 3.5). */
#ifndef MODEL_ETAG_H
#define MODEL_ETAG_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define ETAG_MAX 64

/* Writes the ETag with a final NUL, returns its length. */
int etag_format(int64_t ticks, char out[ETAG_MAX]);

/* "*" sets *ret_any; a well-formed ETag of ours sets *ret_ticks; a well-formed foreign
 * W/"..." sets *ret_ticks to -1 (matches nothing).  Anything else: ERR_INVALID_INPUT
 * with the service's text. */
enum err etag_parse(struct span text, bool *ret_any, int64_t *ret_ticks, struct err_detail *detail);

#endif
