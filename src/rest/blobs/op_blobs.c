/* SPDX-License-Identifier: MIT
 * Blobs: put, get, delete, metadata and properties. */
#include "base/crc64.h"
#include "base/text.h"
#include "model/limits.h"
#include "rest/blobs/blob_body.h"
#include "rest/blobs/blob_request.h"
#include "rest/blobs/ops.h"
#include "rest/core/metadata_headers.h"

#include <stdio.h>
#include <string.h>

/* A range whose sum is asked for. */
#define SUMMED_BYTES ((uint64_t)4 << 20)
#define DEFAULT_TYPE "application/octet-stream"

/* ---- properties ---- */

static struct span sent(const struct request_context *c, const char *own, const char *plain)
{
	struct span s = request_header(c->request, own);
	if (s.p == NULL && plain != NULL)
		s = request_header(c->request, plain);
	return s.p != NULL ? s : SPAN_LIT("");
}

/* plain: the usual headers count too. */
static enum err read_properties(struct request_context *c, bool plain, struct blob_properties *ret)
{
	*ret = (struct blob_properties){
		.content_type = sent(c, "x-ms-blob-content-type", plain ? "Content-Type" : NULL),
		.encoding =
			sent(c, "x-ms-blob-content-encoding", plain ? "Content-Encoding" : NULL),
		.language =
			sent(c, "x-ms-blob-content-language", plain ? "Content-Language" : NULL),
		.cache_control = sent(c, "x-ms-blob-cache-control", plain ? "Cache-Control" : NULL),
		.disposition = sent(c, "x-ms-blob-content-disposition", NULL),
		.md5 = sent(c, "x-ms-blob-content-md5", NULL),
	};
	const struct span all[] = { ret->content_type, ret->encoding, ret->language,
		ret->cache_control, ret->disposition, ret->md5 };
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		for (size_t j = 0; j < all[i].n; j++)
			if ((unsigned char)all[i].p[j] < 0x20 || all[i].p[j] == 0x7f)
				return ERR_HEADER_INVALID;
	uint8_t md5[16];
	return ret->md5.n == 0 || base64_decode_exact(ret->md5, md5, sizeof(md5)) ? ERR_OK
										  : ERR_MD5_INVALID;
}

/* A SAS of a blob may replace what the client sees (rscc, ...). */
static void add_property(struct response *r, const char *name, struct span stored, struct span sas)
{
	response_header(r, name, sas.n > 0 ? sas : stored);
}

static void add_properties(const struct request_context *c, const struct blob_record *b,
	bool ranged, struct response *r)
{
	const struct blob_properties *p = &b->properties;
	const struct sas *s = &c->access.sas;
	const struct span type = p->content_type.n > 0 ? p->content_type : SPAN_LIT(DEFAULT_TYPE);
	blob_etag_headers(b->etag, r);
	blob_date_header("x-ms-creation-time", b->made, r);
	add_property(r, "Content-Type", type, s->rsct);
	add_property(r, "Content-Encoding", p->encoding, s->rsce);
	add_property(r, "Content-Language", p->language, s->rscl);
	add_property(r, "Cache-Control", p->cache_control, s->rscc);
	add_property(r, "Content-Disposition", p->disposition, s->rscd);
	response_header(r, ranged ? "x-ms-blob-content-md5" : "Content-MD5", p->md5);
	response_header_str(r, "Accept-Ranges", "bytes");
	response_header_str(r, "x-ms-blob-type", "BlockBlob");
	response_header_str(r, "x-ms-lease-status", "unlocked");
	response_header_str(r, "x-ms-lease-state", "available");
	response_header_str(r, "x-ms-server-encrypted", "true");
	metadata_to_headers(b->metadata, r);
}

/* ---- Put Blob ---- */

static bool only_creates(const struct request_context *c)
{
	return c->access.kind != ACCESS_OWNER && (c->access.permissions & PERMISSION('w')) == 0;
}

static enum err check_type(struct request_context *c)
{
	struct span type = request_header(c->request, "x-ms-blob-type");
	if (request_header(c->request, "x-ms-copy-source").p != NULL)
		return ERR_NOT_SUPPORTED;
	if (type.p == NULL)
		return err_set(&c->detail, ERR_HEADER_MISSING,
			"A required HTTP header was not specified: x-ms-blob-type.");
	if (span_is(type, "BlockBlob"))
		return ERR_OK;
	return span_is(type, "PageBlob") || span_is(type, "AppendBlob")
		? ERR_NOT_SUPPORTED
		: err_set(&c->detail, ERR_HEADER_INVALID,
			  "x-ms-blob-type is BlockBlob, PageBlob or AppendBlob.");
}

/* The stored MD5 is that of the content, unless the client says another, which must be right. */
static enum err give_md5(struct blob_properties *p, const struct blob_body *body, struct buf *text)
{
	base64_encode(span_make(body->md5, sizeof(body->md5)), text);
	if (!buf_ok(text))
		return ERR_NO_MEMORY;
	if (p->md5.n > 0 && !span_eq(p->md5, buf_span(text)))
		return ERR_MD5_MISMATCH;
	p->md5 = buf_span(text);
	return ERR_OK;
}

static enum err put(struct request_context *c, uint64_t id, const struct blob_body *body,
	struct span metadata, int64_t *ret_etag)
{
	struct blob_new to = {
		.metadata = metadata, .content = body->content, .upload = body->upload
	};
	struct blob_conditions conditions;
	struct buf md5 = BUF_INIT(64);
	enum err e = blob_request_conditions(c, &conditions);
	if (e == ERR_OK && only_creates(c))
		conditions.none_match = ETAG_ANY;
	if (e == ERR_OK)
		e = read_properties(c, true, &to.properties);
	if (e == ERR_OK)
		e = give_md5(&to.properties, body, &md5);
	if (e == ERR_OK)
		e = blob_put(c->service, ORIGIN_REST, id, blob_request(c)->name, &to, &conditions,
			ret_etag, &c->detail);
	buf_fini(&md5);
	return e == ERR_BLOB_EXISTS && only_creates(c) ? ERR_SAS_PERMISSION : e;
}

enum err op_put_blob(struct request_context *c, struct response *r)
{
	struct buf metadata = BUF_INIT(4 * LIMIT_METADATA_BYTES);
	struct blob_body body = { 0 };
	uint64_t id;
	int64_t etag = 0;
	enum err e = check_type(c);
	if (e == ERR_OK)
		e = blob_request_container(c, &id);
	if (e == ERR_OK)
		e = metadata_from_headers(c, &metadata);
	if (e == ERR_OK)
		e = blob_body_read(c, &body);
	if (e == ERR_OK)
		e = put(c, id, &body, buf_span(&metadata), &etag);
	if (e == ERR_OK) {
		r->status = 201;
		blob_etag_headers(etag, r);
		blob_md5_header("Content-MD5", body.md5, r);
		if (version_has(c->version, VERSION_CRC64))
			blob_crc64_header(body.crc64, r);
		response_header_str(r, "x-ms-request-server-encrypted", "true");
	}
	blob_body_fini(&body);
	buf_fini(&metadata);
	return e;
}

/* ---- Get Blob ---- */

struct range {
	bool given;
	uint64_t first, n;
};

static enum err read_range(struct request_context *c, uint64_t size, struct range *ret)
{
	struct span s = request_header(c->request, "x-ms-range");
	uint64_t last = UINT64_MAX;
	*ret = (struct range){ .n = size };
	if (s.n == 0)
		s = request_header(c->request, "Range");
	if (s.n == 0)
		return ERR_OK;
	if (!span_starts(s, SPAN_LIT("bytes=")))
		return ERR_HEADER_INVALID;
	s = span_make(s.p + 6, s.n - 6);
	size_t dash = span_find(s, SPAN_LIT("-"));
	struct span to = dash < s.n ? span_make(s.p + dash + 1, s.n - dash - 1) : s;
	if (dash == s.n || !text_to_u64(span_make(s.p, dash), &ret->first) ||
		(to.n > 0 && (!text_to_u64(to, &last) || last < ret->first)))
		return err_set(&c->detail, ERR_HEADER_INVALID,
			"A range is bytes=FIRST-LAST or bytes=FIRST-.");
	if (ret->first >= size)
		return ERR_BLOB_RANGE;
	ret->given = true;
	ret->n = (last < size - 1 ? last - ret->first + 1 : size - ret->first);
	return ERR_OK;
}

static bool is_true(const struct request_context *c, const char *header)
{
	struct span s = request_header(c->request, header);
	return s.n == 4 && strncasecmp(s.p, "true", 4) == 0;
}

/* x-ms-range-get-content-md5, -crc64. */
static enum err add_sums(struct request_context *c, const struct blob_record *b,
	const struct range *range, struct response *r)
{
	bool md5 = is_true(c, "x-ms-range-get-content-md5");
	bool crc64 = is_true(c, "x-ms-range-get-content-crc64");
	struct buf bytes = BUF_INIT(SUMMED_BYTES);
	uint8_t sum[16];
	if (!md5 && !crc64)
		return ERR_OK;
	if (!range->given || range->n > SUMMED_BYTES)
		return err_set(
			&c->detail, ERR_HEADER_INVALID, "A sum needs a range of at most 4 MiB.");
	enum err e = buf_resize(&bytes, (size_t)range->n)
		? blob_read(c->service, b, range->first, bytes.data, (size_t)range->n)
		: ERR_NO_MEMORY;
	if (e == ERR_OK && md5) {
		crypto_md5(buf_span(&bytes), sum);
		blob_md5_header("Content-MD5", sum, r);
	}
	if (e == ERR_OK && crc64)
		blob_crc64_header(crc64_add(0, buf_span(&bytes)), r);
	buf_fini(&bytes);
	return e;
}

static void add_content_range(const struct range *range, uint64_t size, struct response *r)
{
	char text[100];
	(void)snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)range->first,
		(unsigned long long)(range->first + range->n - 1), (unsigned long long)size);
	response_header_str(r, "Content-Range", text);
}

/* Finds the blob, if its conditions hold. */
static enum err find(struct request_context *c, struct blob_info *ret)
{
	struct blob_conditions conditions;
	uint64_t id;
	enum err e = blob_request_conditions(c, &conditions);
	if (e == ERR_OK)
		e = blob_request_container(c, &id);
	if (e == ERR_OK && context_param(c, "snapshot", &(struct span){ 0 }))
		e = ERR_BLOB_NOT_FOUND;
	if (e == ERR_OK)
		e = blob_find(c->service, id, blob_request(c)->name, ret);
	if (e != ERR_OK)
		return e;
	e = blob_conditions_read(&conditions, ret->record.etag);
	if (e != ERR_OK)
		blob_info_fini(ret);
	return e;
}

enum err op_get_blob(struct request_context *c, struct response *r)
{
	struct blob_info b = { 0 };
	struct range range = { 0 };
	bool head = span_is(c->method, "HEAD");
	enum err e = find(c, &b);
	if (e != ERR_OK)
		return e;
	range.n = b.record.size;
	if (!head)
		e = read_range(c, b.record.size, &range);
	if (e == ERR_OK && !head)
		e = add_sums(c, &b.record, &range, r);
	if (e != ERR_OK) {
		blob_info_fini(&b);
		return e;
	}
	add_properties(c, &b.record, range.given, r);
	if (range.given)
		add_content_range(&range, b.record.size, r);
	r->status = range.given ? 206 : 200;
	return blob_body_send(c->service, &b, range.first, range.n, r);
}

enum err op_get_blob_metadata(struct request_context *c, struct response *r)
{
	struct blob_info b = { 0 };
	enum err e = find(c, &b);
	if (e != ERR_OK)
		return e;
	blob_etag_headers(b.record.etag, r);
	metadata_to_headers(b.record.metadata, r);
	blob_info_fini(&b);
	r->status = 200;
	return ERR_OK;
}

/* ---- changes ---- */

/* The first steps of each change. */
static enum err begin_change(
	struct request_context *c, struct blob_conditions *ret, uint64_t *ret_container)
{
	enum err e = blob_request_conditions(c, ret);
	return e == ERR_OK ? blob_request_container(c, ret_container) : e;
}

enum err op_delete_blob(struct request_context *c, struct response *r)
{
	struct blob_conditions conditions;
	uint64_t id;
	enum err e = begin_change(c, &conditions, &id);
	if (e == ERR_OK && context_param(c, "snapshot", &(struct span){ 0 }))
		e = ERR_BLOB_NOT_FOUND;
	if (e == ERR_OK)
		e = blob_delete(c->service, ORIGIN_REST, id, blob_request(c)->name, &conditions,
			&c->detail);
	r->status = 202;
	return e;
}

enum err op_set_blob_metadata(struct request_context *c, struct response *r)
{
	struct buf metadata = BUF_INIT(4 * LIMIT_METADATA_BYTES);
	struct blob_conditions conditions;
	uint64_t id;
	int64_t etag = 0;
	enum err e = begin_change(c, &conditions, &id);
	if (e == ERR_OK)
		e = metadata_from_headers(c, &metadata);
	if (e == ERR_OK)
		e = blob_set_metadata(c->service, ORIGIN_REST, id, blob_request(c)->name,
			buf_span(&metadata), &conditions, &etag, &c->detail);
	buf_fini(&metadata);
	blob_etag_headers(etag, r);
	r->status = 200;
	return e;
}

enum err op_set_blob_properties(struct request_context *c, struct response *r)
{
	struct blob_properties properties;
	struct blob_conditions conditions;
	uint64_t id;
	int64_t etag = 0;
	enum err e = begin_change(c, &conditions, &id);
	if (e == ERR_OK)
		e = read_properties(c, false, &properties);
	if (e == ERR_OK)
		e = blob_set_properties(c->service, ORIGIN_REST, id, blob_request(c)->name,
			&properties, &conditions, &etag, &c->detail);
	blob_etag_headers(etag, r);
	r->status = 200;
	return e;
}
