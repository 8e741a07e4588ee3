/* SPDX-License-Identifier: MIT
 * $select (protocol section 6.6). */
#ifndef REST_TABLES_SELECT_H
#define REST_TABLES_SELECT_H

#include "rest/tables/table_request.h"

/* Sets the names of $select in the style; c->arena owns the array.  style->all stays without
 * $select, with "*", and in versions without $select.  ERR_INVALID_INPUT for too many names and
 * invalid ones. */
enum err select_read(struct request_context *c, struct odata_style *style);

#endif
