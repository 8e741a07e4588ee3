/* SPDX-License-Identifier: MIT
 * Append blobs: create, append a block. */
#include "base/text.h"
#include "rest/blobs/blob_body.h"
#include "rest/blobs/blob_request.h"
#include "rest/blobs/ops.h"
#include "service/blobs/blocks.h"

#include <inttypes.h>
#include <stdio.h>

enum err op_put_append_blob(struct request_context *c, const struct blob_conditions *conditions,
	uint64_t container, const struct blob_properties *properties, struct span metadata,
	int64_t *ret_etag)
{
	struct blob_change w = op_change(c, container, conditions);
	const struct append_new to = { .properties = *properties, .metadata = metadata };
	enum err e = append_create(&w, &to);
	*ret_etag = w.etag;
	return e;
}

static enum err read_bytes(struct request_context *c, const char *header, int64_t *ret)
{
	struct span s = request_header(c->request, header);
	*ret = -1;
	if (s.n == 0 || (text_to_i64(s, ret) && *ret >= 0))
		return ERR_OK;
	return err_set(
		&c->detail, ERR_HEADER_INVALID, "%s is a number from 0 to 2^63 - 1.", header);
}

static void add_number(struct response *r, const char *header, uint64_t number)
{
	char text[32];
	(void)snprintf(text, sizeof(text), "%" PRIu64, number);
	response_header_str(r, header, text);
}

enum err op_append_block(struct request_context *c, struct response *r)
{
	struct blob_body body = { 0 };
	struct blob_conditions conditions;
	struct append_conditions limits;
	struct append_result now;
	uint64_t container;
	enum err e = read_bytes(c, "x-ms-blob-condition-maxsize", &limits.max_size);
	if (e == ERR_OK)
		e = read_bytes(c, "x-ms-blob-condition-appendpos", &limits.position);
	if (e == ERR_OK)
		e = blob_request_begin(c, &conditions, &container);
	if (e == ERR_OK)
		e = op_block_body(c, &body);
	if (e == ERR_OK) {
		struct blob_change w = op_change(c, container, &conditions);
		e = append_block(&w, body.upload, &limits, &now);
		blob_etag_headers(w.etag, r);
	}
	if (e == ERR_OK) {
		op_block_sums(c, &body, r);
		add_number(r, "x-ms-blob-append-offset", now.offset);
		add_number(r, "x-ms-blob-committed-block-count", now.blocks);
	}
	blob_body_fini(&body);
	r->status = 201;
	return e;
}
