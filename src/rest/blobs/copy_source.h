/* SPDX-License-Identifier: MIT
 * The source of a copy: a URL of this server that the request may read. */
#ifndef REST_BLOBS_COPY_SOURCE_H
#define REST_BLOBS_COPY_SOURCE_H

#include "rest/core/context.h"
#include "service/blobs/conditions.h"

struct copy_source {
	uint64_t container; /* its id */
	struct span name;   /* of the blob */
	struct blob_conditions conditions;
	struct span url; /* without a signature */
};

/* Reads x-ms-copy-source and the source's conditions; *ret borrows from the request.  The owner of an
 * account may copy from it.  All others need a SAS in the source's URL, or a public container.
 *
 * ERR_HEADER_INVALID; ERR_COPY_SOURCE for a URL of another server; ERR_COPY_ACCESS;
 * ERR_CONTAINER_NOT_FOUND; ERR_BLOB_NOT_FOUND. */
enum err copy_source_read(struct request_context *c, struct copy_source *ret);

#endif
