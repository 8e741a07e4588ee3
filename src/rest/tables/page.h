/* SPDX-License-Identifier: MIT
 * Options of all paged responses. */
#ifndef REST_TABLES_PAGE_H
#define REST_TABLES_PAGE_H

#include "rest/tables/table_request.h"

#define PAGE_ROWS 1000

/* Reads $top, 0 to 1000 and 1000 by default.  The deadline is in 5 s, or earlier by `timeout`.
 * ERR_INVALID_INPUT for an invalid $top. */
enum err page_options(struct request_context *c, size_t *ret_top, uint64_t *ret_deadline_us);

#endif
