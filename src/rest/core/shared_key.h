/* SPDX-License-Identifier: MIT
 * What SharedKey and SharedKeyLite sign for queues, as parts of the description (rest_service.h):
 * more headers than for tables, all x-ms- headers, and the whole query. */
#ifndef REST_CORE_SHARED_KEY_H
#define REST_CORE_SHARED_KEY_H

#include "base/buf.h"
#include "rest/core/request.h"
#include "rest/core/request_url.h"

#include <stdbool.h>

void shared_key_head(const struct request *r, bool lite, struct buf *out);
void shared_key_query(const struct request_url *url, bool lite, struct buf *out);

#endif
