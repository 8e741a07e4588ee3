/* SPDX-License-Identifier: MIT
 * The bytes of a blob in a request, and in a response. */
#ifndef REST_BLOBS_BLOB_BODY_H
#define REST_BLOBS_BLOB_BODY_H

#include "rest/blobs/body_sums.h"
#include "rest/core/context.h"
#include "rest/core/rest_service.h"
#include "service/blobs/blobs.h"

/* The bodies that the socket takes in parts. */
extern const struct rest_streams blob_streams;

/* The content of a request. */
struct blob_body {
	struct span content;        /* small, where there is no upload */
	struct blob_upload *upload; /* NULL: content */
	void *owned;                /* has the upload, where the connection has not */
	uint64_t size;
	struct body_sums sums;
};

/* Reads the content and compares it with the sums in the headers.  Call blob_body_fini() also after an
 * error.  ERR_BODY_TOO_LARGE: more than the version allows; those of a source are not read.
 * ERR_MD5_INVALID, ERR_MD5_MISMATCH, ERR_CRC64_MISMATCH, ERR_HEADER_INVALID. */
enum err blob_body_read(struct request_context *c, struct blob_body *ret);
/* The same, but a small content is an upload too. */
enum err blob_body_upload(struct request_context *c, struct blob_body *ret);
/* The same for bytes that are in memory and need no upload; they are borrowed, and nothing needs
 * blob_body_fini(). */
enum err blob_body_sums(struct request_context *c, struct span bytes, struct blob_body *ret);
void blob_body_fini(struct blob_body *b);
/* Sums up the content of a blob. */
enum err blob_body_md5(struct service *s, const struct blob_record *b, uint8_t out[16]);

/* Gives the response n bytes from offset on.  Takes *b over, also on failure. */
enum err blob_body_send(
	struct service *s, struct blob_info *b, uint64_t offset, uint64_t n, struct response *r);

#endif
