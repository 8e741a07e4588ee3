/* SPDX-License-Identifier: MIT
 * Access tiers in requests and answers. */
#ifndef REST_BLOBS_TIER_HEADERS_H
#define REST_BLOBS_TIER_HEADERS_H

#include "rest/core/context.h"
#include "service/blobs/blob_record.h"

/* Reads x-ms-access-tier; TIER_UNSET without it.  ERR_HEADER_INVALID. */
enum err tier_read(struct request_context *c, enum blob_tier *ret);
/* Add the tier of a block blob to a response, and to the properties of a listing. */
void tier_headers_add(const struct blob_record *b, struct response *r);
void tier_xml_add(const struct blob_record *b, struct buf *out);

#endif
