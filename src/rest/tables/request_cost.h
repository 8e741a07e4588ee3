/* SPDX-License-Identifier: MIT
 * Decides which requests may occupy a thread for seconds: queries that search for their rows.  They
 * have their own threads, so that other requests do not wait for them. */
#ifndef REST_TABLES_REQUEST_COST_H
#define REST_TABLES_REQUEST_COST_H

#include "rest/core/request.h"

#include <stdbool.h>

/* Returns true for a query that may scan, and for a batch with a query.  A query is short without
 * $filter, or if a short $filter names keys of rows, or partitions and no property.  Takes a few
 * us, at most 1 ms. */
bool request_may_be_long(const struct request *r);

#endif
