/* SPDX-License-Identifier: MIT
 * Blobs: put, get, delete, metadata and properties. */
#include "base/crc64.h"
#include "base/text.h"
#include "model/limits.h"
#include "rest/blobs/blob_body.h"
#include "rest/blobs/blob_headers.h"
#include "rest/blobs/blob_request.h"
#include "rest/blobs/ops.h"
#include "rest/blobs/tier_headers.h"
#include "rest/core/metadata_headers.h"
#include "service/blobs/tiers.h"

#include <stdio.h>
#include <string.h>

/* A range whose sum is asked for. */
#define SUMMED_BYTES ((uint64_t)4 << 20)

/* ---- Put Blob ---- */

static enum err check_type(struct request_context *c)
{
	struct span type = request_header(c->request, "x-ms-blob-type");
	if (type.p == NULL)
		return err_set(&c->detail, ERR_HEADER_MISSING,
			"A required HTTP header was not specified: x-ms-blob-type.");
	if (span_is(type, "BlockBlob") || span_is(type, "PageBlob") || span_is(type, "AppendBlob"))
		return ERR_OK;
	return err_set(&c->detail, ERR_HEADER_INVALID,
		"x-ms-blob-type is BlockBlob, PageBlob or AppendBlob.");
}

/* The stored MD5 is that of the content, unless the client says another, which must be right. */
static enum err give_md5(struct blob_properties *p, const struct blob_body *body, struct buf *text)
{
	base64_encode(span_make(body->sums.md5, sizeof(body->sums.md5)), text);
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
	struct span type = request_header(c->request, "x-ms-blob-type");
	bool pages = span_is(type, "PageBlob"), appends = span_is(type, "AppendBlob");
	enum err e = blob_request_conditions(c, &conditions);
	if (e == ERR_OK && (pages || appends) && body->size > 0)
		e = err_set(&c->detail, ERR_HEADER_INVALID,
			"A new page blob or append blob has no body.");
	if (e == ERR_OK && blob_request_only_creates(c))
		conditions.none_match = ETAG_ANY;
	if (e == ERR_OK)
		e = blob_properties_read(c, true, &to.properties);
	if (e == ERR_OK)
		e = tier_read(c, &to.tier);
	if (e == ERR_OK && !pages && !appends)
		e = give_md5(&to.properties, body, &md5);
	if (e == ERR_OK && pages)
		e = op_put_page_blob(c, &conditions, id, &to.properties, metadata, ret_etag);
	else if (e == ERR_OK && appends)
		e = op_put_append_blob(c, &conditions, id, &to.properties, metadata, ret_etag);
	else if (e == ERR_OK)
		e = blob_put(c->service, ORIGIN_REST, id, blob_request(c)->name, &to, &conditions,
			ret_etag, &c->detail);
	buf_fini(&md5);
	return e == ERR_BLOB_EXISTS && blob_request_only_creates(c) ? ERR_SAS_PERMISSION : e;
}

enum err op_put_blob(struct request_context *c, struct response *r)
{
	struct buf metadata = BUF_INIT(4 * LIMIT_METADATA_BYTES);
	struct blob_body body = { 0 };
	uint64_t id;
	int64_t etag = 0;
	if (request_header(c->request, "x-ms-copy-source").p != NULL)
		return op_copy_blob(c, r);
	enum err e = check_type(c);
	if (e == ERR_OK)
		e = rest_collection_id(c, &id);
	if (e == ERR_OK)
		e = metadata_from_headers(c, &metadata);
	if (e == ERR_OK)
		e = blob_body_read(c, &body);
	if (e == ERR_OK)
		e = put(c, id, &body, buf_span(&metadata), &etag);
	if (e == ERR_OK) {
		r->status = 201;
		blob_etag_headers(etag, r);
		blob_md5_header("Content-MD5", body.sums.md5, r);
		if (version_has(c->version, VERSION_CRC64))
			blob_crc64_header(body.sums.crc64, r);
		response_header_str(r, "x-ms-request-server-encrypted", "true");
	}
	blob_body_fini(&body);
	buf_fini(&metadata);
	return e;
}

/* ---- Get Blob ---- */

static bool is_true(const struct request_context *c, const char *header)
{
	struct span s = request_header(c->request, header);
	return s.n == 4 && strncasecmp(s.p, "true", 4) == 0;
}

/* x-ms-range-get-content-md5, -crc64. */
static enum err add_sums(struct request_context *c, const struct blob_record *b,
	const struct blob_range *range, struct response *r)
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

enum err op_get_blob(struct request_context *c, struct response *r)
{
	struct blob_info b = { 0 };
	struct blob_range range = { 0 };
	bool head = span_is(c->method, "HEAD");
	enum err e = blob_request_find(c, &b);
	if (e != ERR_OK)
		return e;
	range.n = b.record.size;
	if (!head)
		e = blob_tier_check_read(&b.record);
	if (e == ERR_OK && !head)
		e = blob_range_read(c, b.record.size, &range);
	if (e == ERR_OK && !head)
		e = add_sums(c, &b.record, &range, r);
	if (e != ERR_OK) {
		blob_info_fini(&b);
		return e;
	}
	blob_properties_add(c, &b.record, range.given, r);
	if (range.given)
		blob_range_header(&range, b.record.size, r);
	r->status = range.given ? 206 : 200;
	return blob_body_send(c->service, &b, range.first, range.n, r);
}

enum err op_get_blob_metadata(struct request_context *c, struct response *r)
{
	struct blob_info b = { 0 };
	enum err e = blob_request_find(c, &b);
	if (e != ERR_OK)
		return e;
	blob_etag_headers(b.record.etag, r);
	metadata_to_headers(b.record.metadata, r);
	blob_info_fini(&b);
	r->status = 200;
	return ERR_OK;
}

/* ---- changes ---- */

static enum err read_delete_snapshots(struct request_context *c, enum snapshots_too *ret)
{
	struct span s = request_header(c->request, "x-ms-delete-snapshots");
	bool only = span_is(s, "only"), ok = only || span_is(s, "include");
	*ret = s.n == 0 ? SNAPSHOTS_NONE : only ? SNAPSHOTS_ONLY : SNAPSHOTS_TOO;
	if (s.n > 0 && (!ok || context_param(c, "snapshot", &(struct span){ 0 })))
		return err_set(&c->detail, ERR_HEADER_INVALID,
			"x-ms-delete-snapshots is include or only, for a blob and not for a "
			"snapshot.");
	return ERR_OK;
}

enum err op_delete_blob(struct request_context *c, struct response *r)
{
	struct blob_conditions conditions;
	enum snapshots_too how;
	struct span key;
	uint64_t id;
	enum err e = blob_request_begin(c, &conditions, &id);
	if (e == ERR_OK)
		e = read_delete_snapshots(c, &how);
	if (e == ERR_OK)
		e = blob_request_key(c, blob_request(c)->name, &key);
	if (e == ERR_OK)
		e = blob_delete(c->service, ORIGIN_REST, id, key, how, &conditions, &c->detail);
	r->status = 202;
	return e;
}

enum err op_set_blob_metadata(struct request_context *c, struct response *r)
{
	struct buf metadata = BUF_INIT(4 * LIMIT_METADATA_BYTES);
	struct blob_conditions conditions;
	uint64_t id;
	int64_t etag = 0;
	enum err e = blob_request_begin(c, &conditions, &id);
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
	enum err e = blob_request_begin(c, &conditions, &id);
	if (e == ERR_OK)
		e = blob_properties_read(c, false, &properties);
	if (e == ERR_OK && op_edits_page_blob(c))
		e = op_edit_page_blob(c, &conditions, id, &properties, r, &etag);
	else if (e == ERR_OK)
		e = blob_set_properties(c->service, ORIGIN_REST, id, blob_request(c)->name,
			&properties, &conditions, &etag, &c->detail);
	blob_etag_headers(etag, r);
	r->status = 200;
	return e;
}
