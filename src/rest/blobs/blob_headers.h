/* SPDX-License-Identifier: MIT
 * The headers of a blob's properties and of its ranges. */
#ifndef REST_BLOBS_BLOB_HEADERS_H
#define REST_BLOBS_BLOB_HEADERS_H

#include "rest/core/context.h"
#include "service/blobs/blob_record.h"

/* Reads the properties, which borrow from the request.  plain: the usual headers count too.
 * ERR_HEADER_INVALID, ERR_MD5_INVALID. */
enum err blob_properties_read(struct request_context *c, bool plain, struct blob_properties *ret);
/* Adds all headers of a blob that a GET or HEAD answers.  ranged: the body is a part of it. */
void blob_properties_add(const struct request_context *c, const struct blob_record *b, bool ranged,
	struct response *r);

/* Returns the type as headers and lists name it. */
const char *blob_type_name(enum blob_type type);

struct blob_range {
	bool given;
	uint64_t first, n;
};
/* Reads x-ms-range, or Range, and cuts it at the end of a content of `size` bytes; all of it without
 * a header.  ERR_HEADER_INVALID.  ERR_BLOB_RANGE: it begins behind the end. */
enum err blob_range_read(struct request_context *c, uint64_t size, struct blob_range *ret);
/* The same for the text of another header; "": all. */
enum err blob_range_parse(
	struct request_context *c, struct span s, uint64_t size, struct blob_range *ret);
/* Adds Content-Range. */
void blob_range_header(const struct blob_range *range, uint64_t size, struct response *r);

#endif
