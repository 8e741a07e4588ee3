/* SPDX-License-Identifier: MIT
 * Which requests may keep a thread busy for seconds: queries that look for their rows.  They
 * have threads of their own, so that everybody else never waits for them. */
#ifndef REST_REQUEST_COST_H
#define REST_REQUEST_COST_H

#include "rest/request.h"

#include <stdbool.h>

/* A query, unless its page costs what it holds: no $filter, or a short one that names its
 * rows' keys, or its partitions and no property; and a batch with a query.  The judgement
 * is made where connections are served: a few us, 1 ms at most whatever the request says. */
bool request_may_be_long(const struct request *r);

#endif
