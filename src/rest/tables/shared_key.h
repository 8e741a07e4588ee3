/* SPDX-License-Identifier: MIT
 * What SharedKey and SharedKeyLite sign for tables (protocol section 4.2), as parts of the
 * description (rest_service.h). */
#ifndef REST_TABLES_SHARED_KEY_H
#define REST_TABLES_SHARED_KEY_H

#include "base/buf.h"
#include "rest/core/request.h"
#include "rest/core/request_url.h"

#include <stdbool.h>

void table_sign_head(const struct request *r, bool lite, struct buf *out);
void table_sign_query(const struct request_url *url, bool lite, struct buf *out);

#endif
