/* SPDX-License-Identifier: MIT
 * The sums of a body: MD5 where the request gives it or the response tells it, and CRC-64. */
#ifndef REST_BLOBS_BODY_SUMS_H
#define REST_BLOBS_BODY_SUMS_H

#include "base/crypto.h"
#include "rest/core/context.h"

struct body_sums {
	bool has_md5; /* it is needed; CRC-64 costs little */
	struct crypto_md5 state;
	uint8_t md5[16];
	uint64_t crc64;
};

/* Begins the sums that this request needs. */
void body_sums_begin(struct body_sums *s, const struct request *r);
/* Adds the bytes that follow. */
void body_sums_add(struct body_sums *s, struct span bytes);
/* Ends them: crc64 is right from then on, and md5 if has_md5. */
void body_sums_end(struct body_sums *s);

/* Compares them with the headers of the request.  ERR_MD5_INVALID, ERR_MD5_MISMATCH,
 * ERR_CRC64_MISMATCH; ERR_HEADER_INVALID: both are sent. */
enum err body_sums_check(struct request_context *c, const struct body_sums *s);
/* Adds the one that the client gave, else CRC-64; before its version, MD5. */
void body_sums_response(
	const struct request_context *c, const struct body_sums *s, struct response *r);

/* Adds Content-MD5, or x-ms-content-crc64. */
void blob_md5_header(const char *name, const uint8_t md5[16], struct response *r);
void blob_crc64_header(uint64_t crc64, struct response *r);

#endif
