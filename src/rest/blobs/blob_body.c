/* SPDX-License-Identifier: MIT
 * A response of more than SEND_AT_ONCE bytes is read while it is sent, so it needs no memory for its
 * length. */
#include "rest/blobs/blob_body.h"

#include "base/crc64.h"
#include "base/crypto.h"
#include "model/versions.h"

#include <stdlib.h>
#include <string.h>

#define SEND_AT_ONCE ((uint64_t)64 << 10)
/* The largest body of the newest versions: Put Blob, 5,000 MiB. */
#define STREAM_LIMIT ((uint64_t)5000 << 20)

/* ---- requests ---- */

static bool has_param(struct span target, const char *text)
{
	return memmem(target.p, target.n, text, strlen(text)) != NULL;
}

/* Put Blob and what is like it.  The other bodies are small. */
static bool wanted(const struct request *r)
{
	return span_is(r->method, "PUT") && request_header(r, "x-ms-copy-source").p == NULL &&
		(request_header(r, "x-ms-blob-type").p != NULL ||
			has_param(r->target, "comp=block&") ||
			has_param(r->target, "comp=appendblock") ||
			span_ends(r->target, SPAN_LIT("comp=block")));
}

static enum err begin(struct service *service, void **ret)
{
	struct blob_upload *u;
	enum err e = blob_upload_new(service, ORIGIN_REST, &u);
	if (e == ERR_OK)
		*ret = u;
	return e;
}

static enum err add(void *stream, struct span bytes)
{
	return blob_upload_add(stream, bytes, NULL);
}

static enum err end(void *stream)
{
	return blob_upload_end(stream, NULL);
}

static void drop(void *stream)
{
	blob_upload_free(stream);
}

const struct rest_streams blob_streams = {
	.limit = STREAM_LIMIT,
	.wanted = wanted,
	.begin = begin,
	.add = add,
	.end = end,
	.free = drop,
};

static enum err upload_body(struct request_context *c, struct blob_body *b)
{
	struct span body = c->request->body;
	enum err e = blob_upload_new(c->service, ORIGIN_REST, &b->upload);
	if (e != ERR_OK)
		return e;
	b->owned = true;
	e = blob_upload_add(b->upload, body, &c->detail);
	return e == ERR_OK ? blob_upload_end(b->upload, &c->detail) : e;
}

static enum err check_md5(struct request_context *c, const char *header, const struct blob_body *b)
{
	struct span sent = request_header(c->request, header);
	uint8_t md5[16];
	if (sent.n == 0)
		return ERR_OK;
	if (!base64_decode_exact(sent, md5, sizeof(md5)))
		return ERR_MD5_INVALID;
	return memcmp(md5, b->md5, sizeof(md5)) == 0 ? ERR_OK : ERR_MD5_MISMATCH;
}

static enum err check_crc64(struct request_context *c, const struct blob_body *b)
{
	struct span sent = request_header(c->request, "x-ms-content-crc64");
	uint8_t given[CRC64_BYTES], right[CRC64_BYTES];
	if (sent.n == 0)
		return ERR_OK;
	if (request_header(c->request, "Content-MD5").n > 0)
		return err_set(&c->detail, ERR_HEADER_INVALID,
			"Content-MD5 and x-ms-content-crc64 cannot be sent together.");
	if (!base64_decode_exact(sent, given, sizeof(given)))
		return err_set(&c->detail, ERR_HEADER_INVALID,
			"x-ms-content-crc64 is not the base64 text of 8 bytes.");
	crc64_write(b->crc64, right);
	return memcmp(given, right, sizeof(right)) == 0 ? ERR_OK : ERR_CRC64_MISMATCH;
}

static enum err check_sums(struct request_context *c, const struct blob_body *b)
{
	enum err e = check_md5(c, "Content-MD5", b);
	return e == ERR_OK ? check_crc64(c, b) : e;
}

enum err blob_body_sums(struct request_context *c, struct span bytes, struct blob_body *ret)
{
	*ret = (struct blob_body){ .content = bytes, .size = bytes.n };
	ret->crc64 = crc64_add(0, bytes);
	crypto_md5(bytes, ret->md5);
	return check_sums(c, ret);
}

static enum err read_body(struct request_context *c, size_t small, struct blob_body *ret)
{
	struct span body = c->request->body;
	enum err e = ERR_OK;
	*ret = (struct blob_body){ .content = SPAN_LIT(""), .upload = c->request->stream };
	if (ret->upload == NULL && body.n > small)
		e = upload_body(c, ret);
	if (ret->upload != NULL && e == ERR_OK) {
		ret->size = blob_upload_size(ret->upload);
		ret->crc64 = blob_upload_crc64(ret->upload);
		memcpy(ret->md5, blob_upload_md5(ret->upload), sizeof(ret->md5));
	} else if (e == ERR_OK) {
		return blob_body_sums(c, body.n > 0 ? body : SPAN_LIT(""), ret);
	}
	return e == ERR_OK ? check_sums(c, ret) : e;
}

enum err blob_body_read(struct request_context *c, struct blob_body *ret)
{
	return read_body(c, BLOB_INLINE_BYTES, ret);
}

enum err blob_body_upload(struct request_context *c, struct blob_body *ret)
{
	return read_body(c, 0, ret);
}

void blob_body_fini(struct blob_body *b)
{
	if (b->owned)
		blob_upload_free(b->upload);
	*b = (struct blob_body){ 0 };
}

enum err blob_body_md5(struct service *s, const struct blob_record *b, uint8_t out[16])
{
	struct crypto_md5 md5;
	struct buf part = BUF_INIT(EXTENT_PIECE_BYTES);
	enum err e = ERR_OK;
	crypto_md5_begin(&md5);
	for (uint64_t at = 0; at < b->size && e == ERR_OK; at += part.len) {
		uint64_t left = b->size - at;
		size_t n = left < EXTENT_PIECE_BYTES ? (size_t)left : EXTENT_PIECE_BYTES;
		e = buf_resize(&part, n) ? blob_read(s, b, at, part.data, n) : ERR_NO_MEMORY;
		if (e == ERR_OK)
			crypto_md5_add(&md5, buf_span(&part));
	}
	crypto_md5_end(&md5, out);
	buf_fini(&part);
	return e;
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

/* ---- responses ---- */

struct source {
	struct service *service;
	struct blob_info blob;
	uint64_t offset;
};

static enum err read_source(void *arg, uint64_t at, char *out, size_t n)
{
	const struct source *s = arg;
	return blob_read(s->service, &s->blob.record, s->offset + at, out, n);
}

static void free_source(void *arg)
{
	struct source *s = arg;
	blob_info_fini(&s->blob);
	free(s);
}

enum err blob_body_send(struct service *service, struct blob_info *b, uint64_t offset, uint64_t n,
	struct response *r)
{
	if (n <= SEND_AT_ONCE) {
		enum err e = n > 0 && !buf_resize(&r->body, (size_t)n)
			? ERR_NO_MEMORY
			: blob_read(service, &b->record, offset, r->body.data, (size_t)n);
		blob_info_fini(b);
		return e;
	}
	struct source *s = malloc(sizeof(*s));
	if (s == NULL) {
		blob_info_fini(b);
		return ERR_NO_MEMORY;
	}
	*s = (struct source){ service, *b, offset };
	*b = (struct blob_info){ 0 };
	r->source = (struct response_source){ n, read_source, free_source, s };
	return ERR_OK;
}
