/* SPDX-License-Identifier: MIT
 * A response of more than SEND_AT_ONCE bytes is read while it is sent, so it needs no memory for its
 * length. */
#include "rest/blobs/blob_body.h"

#include "base/crypto.h"
#include "rest/blobs/body_source.h"

#include <stdlib.h>
#include <string.h>

#define SEND_AT_ONCE ((uint64_t)64 << 10)
#define MIB ((uint64_t)1 << 20)
/* The largest body of all: Put Blob. */
#define STREAM_LIMIT (5000 * MIB)

/* ---- requests ---- */

static bool has_param(struct span target, const char *text)
{
	return memmem(target.p, target.n, text, strlen(text)) != NULL;
}

/* Put Blob and what is like it.  The other bodies are small. */
static bool wanted(const struct request *r)
{
	return span_is(r->method, "PUT") && !body_source_given(r) &&
		(request_header(r, "x-ms-blob-type").p != NULL ||
			has_param(r->target, "comp=block&") ||
			has_param(r->target, "comp=appendblock") ||
			span_ends(r->target, SPAN_LIT("comp=block")));
}

static uint64_t limit_of(const struct request_context *c)
{
	if (span_is(c->url.comp, "appendblock"))
		return version_has(c->version, VERSION_APPEND_100) ? 100 * MIB : 4 * MIB;
	if (!span_is(c->url.comp, "block"))
		return STREAM_LIMIT;
	return version_has(c->version, VERSION_BLOCK_4000)   ? 4000 * MIB
		: version_has(c->version, VERSION_BLOCK_100) ? 100 * MIB
							     : 4 * MIB;
}

/* A body that is taken in parts. */
struct body_stream {
	struct blob_upload *upload;
	struct body_sums sums;
};

static void drop(void *stream)
{
	struct body_stream *b = stream;
	if (b != NULL)
		blob_upload_free(b->upload);
	free(b);
}

static enum err begin(struct service *service, const struct request *r, void **ret)
{
	struct body_stream *b = calloc(1, sizeof(*b));
	enum err e = b != NULL ? blob_upload_new(service, ORIGIN_REST, &b->upload) : ERR_NO_MEMORY;
	if (e != ERR_OK) {
		drop(b);
		return e;
	}
	body_sums_begin(&b->sums, r);
	*ret = b;
	return ERR_OK;
}

static enum err add(void *stream, struct span bytes)
{
	struct body_stream *b = stream;
	body_sums_add(&b->sums, bytes);
	return blob_upload_add(b->upload, bytes, NULL);
}

static enum err end(void *stream)
{
	struct body_stream *b = stream;
	body_sums_end(&b->sums);
	return blob_upload_end(b->upload, NULL);
}

const struct rest_streams blob_streams = {
	.limit = STREAM_LIMIT,
	.limit_of = limit_of,
	.wanted = wanted,
	.begin = begin,
	.add = add,
	.end = end,
	.free = drop,
};

/* Takes a body that is in memory, or the bytes of a source. */
static enum err take_whole(struct request_context *c, void **ret)
{
	enum err e = begin(c->service, c->request, ret);
	if (e == ERR_OK)
		e = body_source_given(c->request) ? body_source_read(c, limit_of(c), add, *ret)
						  : add(*ret, c->request->body);
	return e == ERR_OK ? end(*ret) : e;
}

enum err blob_body_sums(struct request_context *c, struct span bytes, struct blob_body *ret)
{
	*ret = (struct blob_body){ .content = bytes, .size = bytes.n };
	body_sums_begin(&ret->sums, c->request);
	body_sums_add(&ret->sums, bytes);
	body_sums_end(&ret->sums);
	return body_sums_check(c, &ret->sums);
}

static enum err read_body(struct request_context *c, size_t small, struct blob_body *ret)
{
	struct span body = c->request->body;
	struct body_stream *stream = c->request->stream;
	if (stream == NULL && body.n <= small && !body_source_given(c->request))
		return blob_body_sums(c, body.n > 0 ? body : SPAN_LIT(""), ret);
	*ret = (struct blob_body){ .content = SPAN_LIT("") };
	if (stream == NULL) {
		enum err e = take_whole(c, &ret->owned);
		if (e != ERR_OK)
			return e;
		stream = ret->owned;
	}
	ret->upload = stream->upload;
	ret->size = blob_upload_size(stream->upload);
	if (ret->size > limit_of(c))
		return ERR_BODY_TOO_LARGE;
	ret->sums = stream->sums;
	return body_sums_check(c, &ret->sums);
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
	drop(b->owned);
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
