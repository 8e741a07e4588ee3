/* SPDX-License-Identifier: MIT
 * What all paged answers share. */
#ifndef REST_PAGE_H
#define REST_PAGE_H

#include "rest/context.h"

#define PAGE_ROWS 1000

/* $top (0 to 1000; 1000 where absent), and when to stop: 5 seconds, or `timeout` if that is
 * less.  ERR_INVALID_INPUT for a bad $top. */
enum err page_options(struct request_context *c, size_t *ret_top, uint64_t *ret_deadline_us);

#endif
