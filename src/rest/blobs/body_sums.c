/* SPDX-License-Identifier: MIT */
#include "rest/blobs/body_sums.h"

#include "base/crc64.h"
#include "model/versions.h"
#include "rest/blobs/body_source.h"

#include <string.h>

/* MD5 takes half of the time of a block.  Without the header a SAS has the version, which is not read yet. */
static bool needs_md5(const struct request *r)
{
	int version = version_parse(request_header(r, "x-ms-version"));
	return request_header(r, "x-ms-blob-type").p != NULL ||
		request_header(r, "x-ms-source-content-md5").n > 0 ||
		request_header(r, "Content-MD5").n > 0 || !version_has(version, VERSION_CRC64);
}

void body_sums_begin(struct body_sums *s, const struct request *r)
{
	*s = (struct body_sums){ .has_md5 = needs_md5(r) };
	crypto_md5_begin(&s->state);
}

void body_sums_add(struct body_sums *s, struct span bytes)
{
	if (s->has_md5)
		crypto_md5_add(&s->state, bytes);
	s->crc64 = crc64_add(s->crc64, bytes);
}

void body_sums_end(struct body_sums *s)
{
	crypto_md5_end(&s->state, s->md5);
}

static enum err check_md5(struct span sent, const struct body_sums *s)
{
	uint8_t md5[16];
	if (!base64_decode_exact(sent, md5, sizeof(md5)))
		return ERR_MD5_INVALID;
	return memcmp(md5, s->md5, sizeof(md5)) == 0 ? ERR_OK : ERR_MD5_MISMATCH;
}

static enum err check_crc64(struct span sent, const struct body_sums *s, struct err_detail *detail)
{
	uint8_t given[CRC64_BYTES], right[CRC64_BYTES];
	if (!base64_decode_exact(sent, given, sizeof(given)))
		return err_set(detail, ERR_HEADER_INVALID,
			"x-ms-content-crc64 is not the base64 text of 8 bytes.");
	crc64_write(s->crc64, right);
	return memcmp(given, right, sizeof(right)) == 0 ? ERR_OK : ERR_CRC64_MISMATCH;
}

enum err body_sums_check(struct request_context *c, const struct body_sums *s)
{
	bool source = body_source_given(c->request);
	struct span md5 =
		request_header(c->request, source ? "x-ms-source-content-md5" : "Content-MD5");
	struct span crc64 = request_header(
		c->request, source ? "x-ms-source-content-crc64" : "x-ms-content-crc64");
	enum err e = md5.n > 0 ? check_md5(md5, s) : ERR_OK;
	if (e != ERR_OK || crc64.n == 0)
		return e;
	return md5.n > 0
		? err_set(&c->detail, ERR_HEADER_INVALID, "MD5 and CRC-64 cannot be sent together.")
		: check_crc64(crc64, s, &c->detail);
}

void body_sums_response(
	const struct request_context *c, const struct body_sums *s, struct response *r)
{
	if (request_header(c->request, "Content-MD5").n > 0 ||
		!version_has(c->version, VERSION_CRC64))
		blob_md5_header("Content-MD5", s->md5, r);
	else
		blob_crc64_header(s->crc64, r);
}

void blob_md5_header(const char *name, const uint8_t md5[16], struct response *r)
{
	struct buf text = BUF_INIT(64);
	base64_encode(span_make(md5, 16), &text);
	response_header(r, name, buf_span(&text));
	buf_fini(&text);
}

void blob_crc64_header(uint64_t crc64, struct response *r)
{
	struct buf text = BUF_INIT(64);
	uint8_t bytes[CRC64_BYTES];
	crc64_write(crc64, bytes);
	base64_encode(span_make(bytes, sizeof(bytes)), &text);
	response_header(r, "x-ms-content-crc64", buf_span(&text));
	buf_fini(&text);
}
