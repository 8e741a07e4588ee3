/* SPDX-License-Identifier: MIT
 * Copy Blob, Copy Blob From URL, Put Blob From URL, Abort Copy Blob.  A copy is complete when its
 * answer is sent, so none is ever pending. */
#include "base/crypto.h"
#include "model/limits.h"
#include "rest/blobs/blob_body.h"
#include "rest/blobs/blob_headers.h"
#include "rest/blobs/blob_request.h"
#include "rest/blobs/copy_source.h"
#include "rest/blobs/lease_headers.h"
#include "rest/blobs/ops.h"
#include "rest/blobs/tier_headers.h"
#include "rest/core/metadata_headers.h"
#include "service/blobs/copy.h"

#include <strings.h>

static bool is_header(const struct request_context *c, const char *header, const char *value)
{
	struct span s = request_header(c->request, header);
	return s.n == strlen(value) && strncasecmp(s.p, value, s.n) == 0;
}

/* Compares x-ms-source-content-md5 with the sum of the source, which must stay the same from here on. */
static enum err check_md5(struct request_context *c, struct copy_source *from)
{
	struct span sent = request_header(c->request, "x-ms-source-content-md5");
	struct blob_info b = { 0 };
	uint8_t want[16], sum[16];
	if (sent.n == 0)
		return ERR_OK;
	if (!base64_decode_exact(sent, want, sizeof(want)))
		return ERR_MD5_INVALID;
	enum err e = blob_find(c->service, from->container, from->name, &b);
	if (e == ERR_OK)
		e = blob_body_md5(c->service, &b.record, sum);
	if (e == ERR_OK && (from->conditions.match == 0 || from->conditions.match == ETAG_ANY))
		from->conditions.match = b.record.etag;
	blob_info_fini(&b);
	return e == ERR_OK && memcmp(want, sum, sizeof(sum)) != 0 ? ERR_MD5_MISMATCH : e;
}

static enum err copy(struct request_context *c, const struct copy_source *from, struct span id,
	const struct blob_properties *properties, int64_t *ret_etag)
{
	struct buf metadata = BUF_INIT(4 * LIMIT_METADATA_BYTES);
	struct span text;
	struct blob_conditions conditions;
	struct blob_copy to = { .service = c->service,
		.origin = ORIGIN_REST,
		.name = blob_request(c)->name,
		.conditions = &conditions,
		.from_container = from->container,
		.from_name = from->name,
		.from_conditions = &from->conditions,
		.properties = properties,
		.only_block = id.n == 0,
		.copied = { .id = id, .source = from->url } };
	bool only_creates = blob_request_only_creates(c);
	enum err e = blob_request_begin(c, &conditions, &to.container);
	if (e == ERR_OK && only_creates)
		conditions.none_match = ETAG_ANY;
	if (e == ERR_OK)
		e = metadata_from_headers(c, &metadata);
	if (e == ERR_OK)
		e = tier_read(c, &to.tier);
	text = buf_span(&metadata);
	if (text.n > 0)
		to.metadata = &text;
	if (e == ERR_OK)
		e = blob_copy(&to, ret_etag, &c->detail);
	buf_fini(&metadata);
	return e == ERR_BLOB_EXISTS && only_creates ? ERR_SAS_PERMISSION : e;
}

/* Put Blob From URL makes a plain block blob, whose properties the request may say. */
static enum err put_from_url(
	struct request_context *c, const struct copy_source *from, struct response *r)
{
	struct blob_properties properties;
	int64_t etag = 0;
	bool keeps = !is_header(c, "x-ms-copy-source-blob-properties", "false");
	if (!is_header(c, "x-ms-blob-type", "BlockBlob"))
		return err_set(&c->detail, ERR_HEADER_INVALID,
			"x-ms-blob-type of a blob from a URL is BlockBlob.");
	enum err e = blob_properties_read(c, true, &properties);
	if (e == ERR_OK)
		e = copy(c, from, (struct span){ 0 }, keeps ? NULL : &properties, &etag);
	blob_etag_headers(etag, r);
	response_header_str(r, "x-ms-request-server-encrypted", "true");
	r->status = 201;
	return e;
}

static enum err copy_blob(
	struct request_context *c, const struct copy_source *from, struct response *r)
{
	struct span id;
	int64_t etag = 0;
	enum err e = lease_id_make(c, &id);
	if (e == ERR_OK)
		e = copy(c, from, id, NULL, &etag);
	blob_etag_headers(etag, r);
	response_header(r, "x-ms-copy-id", id);
	response_header_str(r, "x-ms-copy-status", "success");
	r->status = 202;
	return e;
}

enum err op_copy_blob(struct request_context *c, struct response *r)
{
	struct copy_source from;
	enum err e = copy_source_read(c, &from);
	if (e == ERR_OK)
		e = check_md5(c, &from);
	if (e != ERR_OK)
		return e;
	return request_header(c->request, "x-ms-blob-type").p != NULL ? put_from_url(c, &from, r)
								      : copy_blob(c, &from, r);
}

/* Without metadata in the request the snapshot has those of its blob. */
enum err op_snapshot_blob(struct request_context *c, struct response *r)
{
	struct buf metadata = BUF_INIT(4 * LIMIT_METADATA_BYTES);
	struct blob_conditions conditions;
	struct span text;
	char time[SNAPSHOT_TIME_CHARS + 1];
	struct blob_copy from = { .service = c->service,
		.origin = ORIGIN_REST,
		.from_name = blob_request(c)->name,
		.from_conditions = &conditions };
	int64_t etag = 0;
	enum err e = blob_request_begin(c, &conditions, &from.from_container);
	if (e == ERR_OK)
		e = metadata_from_headers(c, &metadata);
	text = buf_span(&metadata);
	if (text.n > 0)
		from.metadata = &text;
	if (e == ERR_OK)
		e = blob_snapshot(&from, time, &etag, &c->detail);
	buf_fini(&metadata);
	if (e == ERR_OK)
		response_header_str(r, "x-ms-snapshot", time);
	blob_etag_headers(etag, r);
	r->status = 201;
	return e;
}

enum err op_abort_copy(struct request_context *c, struct response *r)
{
	struct blob_info b = { 0 };
	(void)r;
	if (!is_header(c, "x-ms-copy-action", "abort"))
		return err_set(&c->detail, ERR_HEADER_INVALID, "x-ms-copy-action is abort.");
	enum err e = blob_request_find(c, &b);
	blob_info_fini(&b);
	return e == ERR_OK ? ERR_COPY_NOT_PENDING : e;
}
