/* SPDX-License-Identifier: MIT
 * Access tiers of block blobs. */
#ifndef SERVICE_BLOBS_TIERS_H
#define SERVICE_BLOBS_TIERS_H

#include "service/blobs/blob_record.h"
#include "service/blobs/conditions.h"
#include "service/core/service.h"

/* Sets the tier of a block blob or its snapshot; `name` is its key.  The ETag stays.  Sets *ret_was to the
 * tier before.  ERR_BLOB_NOT_FOUND; ERR_BLOB_TYPE: it is no block blob; the errors of
 * lease_check_read(). */
enum err blob_set_tier(struct service *s, enum origin origin, uint64_t container_id,
	struct span name, enum blob_tier tier, struct span lease, enum blob_tier *ret_was,
	struct err_detail *detail);
/* Returns ERR_BLOB_ARCHIVED if the content cannot be read. */
enum err blob_tier_check_read(const struct blob_record *r);

#endif
