/* SPDX-License-Identifier: MIT
 * Blobs of blocks: Put Block, Put Block List, Get Block List. */
#include "base/crypto.h"
#include "codec/xml.h"
#include "model/limits.h"
#include "rest/blobs/blob_body.h"
#include "rest/blobs/blob_headers.h"
#include "rest/blobs/blob_request.h"
#include "rest/blobs/block_list_body.h"
#include "rest/blobs/ops.h"
#include "rest/blobs/tier_headers.h"
#include "rest/core/metadata_headers.h"
#include "service/blobs/staged.h"

#include <inttypes.h>
#include <stdio.h>

struct blob_change op_change(
	struct request_context *c, uint64_t container, const struct blob_conditions *conditions)
{
	return (struct blob_change){ .service = c->service,
		.origin = ORIGIN_REST,
		.container = container,
		.name = blob_request(c)->name,
		.conditions = conditions,
		.detail = &c->detail };
}

/* ---- Put Block ---- */

enum err op_block_body(struct request_context *c, struct blob_body *ret)
{
	enum err e = blob_body_upload(c, ret);
	if (e == ERR_OK && ret->size == 0)
		e = err_set(&c->detail, ERR_HEADER_INVALID, "A block has at least one byte.");
	return e;
}

void op_block_sums(const struct request_context *c, const struct blob_body *b, struct response *r)
{
	body_sums_response(c, &b->sums, r);
	response_header_str(r, "x-ms-request-server-encrypted", "true");
}

enum err op_put_block(struct request_context *c, struct response *r)
{
	struct blob_body body = { 0 };
	struct blob_conditions conditions;
	struct block_id id;
	uint64_t container;
	enum err e = block_id_read(context_param_or_empty(c, "blockid"), &id);
	if (e == ERR_OK)
		e = blob_request_begin(c, &conditions, &container);
	if (e == ERR_OK)
		e = op_block_body(c, &body);
	if (e == ERR_OK) {
		struct blob_change w = op_change(c, container, &conditions);
		e = block_put(&w, &id, body.upload);
	}
	if (e == ERR_OK)
		op_block_sums(c, &body, r);
	blob_body_fini(&body);
	r->status = 201;
	return e;
}

/* ---- Put Block List ---- */

static enum err commit(struct request_context *c, struct blocks_new *to, int64_t *ret_etag)
{
	struct blob_conditions conditions;
	uint64_t container;
	enum err e = blob_request_begin(c, &conditions, &container);
	if (e == ERR_OK)
		e = blob_properties_read(c, false, &to->properties);
	if (e == ERR_OK)
		e = tier_read(c, &to->tier);
	if (e != ERR_OK)
		return e;
	struct blob_change w = op_change(c, container, &conditions);
	e = blocks_commit(&w, to);
	*ret_etag = w.etag;
	return e;
}

enum err op_put_block_list(struct request_context *c, struct response *r)
{
	struct buf metadata = BUF_INIT(4 * LIMIT_METADATA_BYTES);
	struct buf blocks = BUF_INIT(BLOCK_LIST_BUF_LIMIT);
	struct blob_body body = { 0 };
	int64_t etag = 0;
	enum err e = blob_body_sums(c, c->request->body, &body);
	if (e == ERR_OK)
		e = metadata_from_headers(c, &metadata);
	if (e == ERR_OK)
		e = block_list_body_read(c->request->body, &blocks, &c->detail);
	if (e == ERR_OK) {
		struct blocks_new to = { .metadata = buf_span(&metadata),
			.blocks = (const void *)blocks.data,
			.n = blocks.len / sizeof(struct block_choice) };
		e = commit(c, &to, &etag);
	}
	if (e == ERR_OK) {
		blob_etag_headers(etag, r);
		op_block_sums(c, &body, r);
	}
	buf_fini(&blocks);
	buf_fini(&metadata);
	r->status = 201;
	return e;
}

/* ---- Get Block List ---- */

static void add_block(struct buf *out, const struct block_id *id, uint64_t size)
{
	buf_add_str(out, "<Block><Name>");
	base64_encode(span_make(id->bytes, id->n), out);
	buf_addf(out, "</Name><Size>%" PRIu64 "</Size></Block>", size);
}

static void add_lists(const struct blob_blocks *have, bool committed, bool staged, struct buf *out)
{
	buf_add_str(out, XML_DECLARATION "<BlockList>");
	if (committed) {
		buf_add_str(out, "<CommittedBlocks>");
		for (size_t i = 0; i < have->ncommitted; i++)
			add_block(out, &have->committed[i].id, have->committed[i].size);
		buf_add_str(out, "</CommittedBlocks>");
	}
	if (staged) {
		buf_add_str(out, "<UncommittedBlocks>");
		for (size_t i = 0; i < have->nstaged; i++)
			add_block(out, &have->staged[i].id, have->staged[i].size);
		buf_add_str(out, "</UncommittedBlocks>");
	}
	buf_add_str(out, "</BlockList>");
}

static enum err read_kind(struct request_context *c, bool *ret_committed, bool *ret_staged)
{
	struct span kind = context_param_or_empty(c, "blocklisttype");
	bool all = span_is(kind, "all");
	*ret_committed = all || kind.n == 0 || span_is(kind, "committed");
	*ret_staged = all || span_is(kind, "uncommitted");
	if (*ret_committed || *ret_staged)
		return ERR_OK;
	return err_set(&c->detail, ERR_QUERY_VALUE,
		"%s 'blocklisttype' is committed, uncommitted or all.", err_text(ERR_QUERY_VALUE));
}

static enum err list_blocks(struct request_context *c, const struct blob_info *b, bool committed,
	bool staged, struct response *r)
{
	struct blob_blocks have = { 0 };
	char size[32];
	if (b->record.type != BLOB_NONE && b->record.type != BLOB_BLOCK)
		return ERR_BLOB_TYPE;
	enum err e = blob_blocks_load(c->service, b, &have);
	/* An uncommitted blob is nothing else than its blocks. */
	if (e == ERR_OK && b->record.type == BLOB_NONE && have.nstaged == 0)
		e = ERR_BLOB_NOT_FOUND;
	if (e == ERR_OK) {
		add_lists(&have, committed, staged, &r->body);
		(void)snprintf(size, sizeof(size), "%" PRIu64, b->record.size);
		response_header_str(r, "x-ms-blob-content-length", size);
		if (b->record.type != BLOB_NONE)
			blob_etag_headers(b->record.etag, r);
	}
	blob_blocks_fini(&have);
	return e;
}

enum err op_get_block_list(struct request_context *c, struct response *r)
{
	struct blob_info b = { 0 };
	bool committed, staged;
	enum err e = read_kind(c, &committed, &staged);
	if (e == ERR_OK)
		e = blob_request_look(c, &b);
	if (e == ERR_OK)
		e = list_blocks(c, &b, committed, staged, r);
	blob_info_fini(&b);
	response_header_str(r, "Content-Type", "application/xml");
	r->status = 200;
	return e;
}
