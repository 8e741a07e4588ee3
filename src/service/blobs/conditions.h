/* SPDX-License-Identifier: MIT
 * Conditions by ETag, time and lease, for containers and blobs. */
#ifndef SERVICE_BLOBS_CONDITIONS_H
#define SERVICE_BLOBS_CONDITIONS_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define ETAG_ANY INT64_C(-1)   /* "*": whatever is there */
#define ETAG_OTHER INT64_C(-2) /* an ETag that nothing has */

/* Zeroed: no condition. */
struct blob_conditions {
	int64_t match, none_match; /* an ETag; 0: not given */
	bool has_since, has_unmodified;
	int64_t modified_since, unmodified_since; /* ticks, whole seconds */
	/* The id of the lease under which the request runs; n 0: none.  Where there is a lease, a
	 * change checks it, by model/lease.h. */
	struct span lease;
};

/* Checks the conditions of a read.  ERR_BLOB_CONDITION, or ERR_NOT_MODIFIED. */
enum err blob_conditions_read(const struct blob_conditions *c, int64_t etag);
/* Checks those of a write; etag 0: nothing is there.  ERR_BLOB_CONDITION.  ERR_BLOB_EXISTS where
 * nothing may be there. */
enum err blob_conditions_write(const struct blob_conditions *c, int64_t etag);

#endif
