/* SPDX-License-Identifier: MIT
 * The bytes that a request takes from a blob, in place of a body: Put Block From URL and the like. */
#ifndef REST_BLOBS_BODY_SOURCE_H
#define REST_BLOBS_BODY_SOURCE_H

#include "rest/core/context.h"

/* Returns true if the request names a source. */
static inline bool body_source_given(const struct request *r)
{
	return request_header(r, "x-ms-copy-source").p != NULL;
}

/* Takes bytes that follow those before.  An error ends the reading. */
typedef enum err (*body_part_fn)(void *arg, struct span bytes);
/* Gives fn the bytes of the source, or those of x-ms-source-range.  All are of one version of the blob.
 *
 * The errors of copy_source_read() and of fn.  ERR_BODY_TOO_LARGE: more than `limit` bytes.
 * ERR_HEADER_INVALID: there is a body, too.  ERR_BLOB_RANGE; ERR_SOURCE_CONDITION; ERR_BLOB_ARCHIVED.
 * ERR_THROTTLED: the source was changed meanwhile. */
enum err body_source_read(struct request_context *c, uint64_t limit, body_part_fn fn, void *arg);

#endif
