/* SPDX-License-Identifier: MIT
 * The part of a request that only the blob service reads: the resource and the conditions. */
#ifndef REST_BLOBS_BLOB_REQUEST_H
#define REST_BLOBS_BLOB_REQUEST_H

#include "rest/core/collections.h"
#include "rest/core/rest_service.h"
#include "rest/core/xml_error.h"
#include "service/blobs/blob_find.h"
#include "service/blobs/conditions.h"

enum blob_resource {
	BLOB_NOTHING, /* a path that no operation has */
	BLOB_SERVICE,
	BLOB_CONTAINER,
	BLOB_ITSELF,
};

struct blob_request {
	struct span name; /* of the blob in the path */
	struct blob_conditions conditions;
};

/* Returns the blobs' part of a context. */
static inline struct blob_request *blob_request(const struct request_context *c)
{
	return c->own;
}

/* Whether the credential allows making a blob, but not changing one. */
static inline bool blob_request_only_creates(const struct request_context *c)
{
	return c->access.kind != ACCESS_OWNER && (c->access.permissions & PERMISSION('w')) == 0;
}

/* Reads the conditional headers of a change, and the lease id.  ERR_HEADER_INVALID,
 * ERR_MULTIPLE_CONDITIONS, ERR_NOT_SUPPORTED. */
enum err blob_request_conditions(struct request_context *c, struct blob_conditions *ret);
/* Sets *ret to the key in the store of a blob, or of its snapshot that the parameter `snapshot` names;
 * it is in the request's arena.  ERR_QUERY_VALUE. */
enum err blob_request_key(struct request_context *c, struct span name, struct span *ret);
/* The same with another parameter. */
enum err blob_snapshot_key(
	struct request_context *c, struct span name, const char *param, struct span *ret);
/* Reads those of the source of a copy.  ERR_HEADER_INVALID, ERR_NOT_SUPPORTED. */
enum err blob_request_source_conditions(struct request_context *c, struct blob_conditions *ret);
/* Finds the blob of the URL, if its conditions for a read hold.  On ERR_OK call blob_info_fini().  The
 * errors of both, and of rest_collection_id(). */
enum err blob_request_find(struct request_context *c, struct blob_info *ret);
/* The same, but finds also a name that has staged blocks only (BLOB_NONE). */
enum err blob_request_look(struct request_context *c, struct blob_info *ret);
/* The first steps of a change: reads its conditions, and finds the container. */
enum err blob_request_begin(
	struct request_context *c, struct blob_conditions *ret, uint64_t *ret_container);

/* Adds ETag and Last-Modified. */
void blob_etag_headers(int64_t etag, struct response *r);
/* Appends the ETag without its quotes. */
void blob_etag_add(int64_t etag, struct buf *out);
/* Adds a header with a date. */
void blob_date_header(const char *name, int64_t ticks, struct response *r);

/* Parts of the description (rest_service.h). */
enum err blob_request_read_path(struct request_context *c, struct span path);
int blob_request_version(const struct request_context *c);
enum request_cost blob_request_cost(const struct request *r);
bool blob_request_anonymous(struct request_context *c);

#endif
