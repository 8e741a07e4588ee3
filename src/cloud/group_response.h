/* SPDX-License-Identifier: MIT
 * The response to an entity group transaction. */
#ifndef CLOUD_GROUP_RESPONSE_H
#define CLOUD_GROUP_RESPONSE_H

#include "base/err.h"
#include "base/span.h"
#include "cloud/rows.h"

/* Returns the error of the first part whose status is none from 200 to 299, with detail->op as its
 * message begins ("1:..."), else 0.  ERR_INVALID_INPUT: the response has no part. */
enum err group_response(struct span body, struct err_detail *detail);
/* Copies the ETag of each of the first n parts; "" where a part has none. */
void group_response_etags(struct span body, char (*etags)[CLOUD_ETAG_MAX], size_t n);

#endif
