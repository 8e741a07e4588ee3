/* SPDX-License-Identifier: MIT
 * Decides which requests take a bounded time, and which may occupy a thread for seconds: queries that
 * search for their rows.  These have their own threads, so that other requests do not wait. */
#ifndef REST_TABLES_REQUEST_COST_H
#define REST_TABLES_REQUEST_COST_H

#include "rest/core/rest_service.h"

/* COST_BOUNDED: OPTIONS, or a read of one entity.  COST_LONG: a query that may scan, or a batch with
 * a query.  A query is short without $filter, or if a short $filter names keys of rows, or
 * partitions and no property.  COST_USUAL: others, which may wait for a commit. */
enum request_cost table_request_cost(const struct request *r);

#endif
