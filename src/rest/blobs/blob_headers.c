/* SPDX-License-Identifier: MIT
 * The headers of a blob's properties and of its ranges. */
#include "rest/blobs/blob_headers.h"

#include "base/crypto.h"
#include "base/text.h"
#include "rest/blobs/blob_request.h"
#include "rest/blobs/lease_headers.h"
#include "rest/blobs/tier_headers.h"
#include "rest/core/metadata_headers.h"

#include <stdio.h>

#define DEFAULT_TYPE "application/octet-stream"

static struct span sent(const struct request_context *c, const char *own, const char *plain)
{
	struct span s = request_header(c->request, own);
	if (s.p == NULL && plain != NULL)
		s = request_header(c->request, plain);
	return s.p != NULL ? s : SPAN_LIT("");
}

enum err blob_properties_read(struct request_context *c, bool plain, struct blob_properties *ret)
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

const char *blob_type_name(enum blob_type type)
{
	return type == BLOB_PAGES ? "PageBlob" : type == BLOB_APPEND ? "AppendBlob" : "BlockBlob";
}

/* A SAS of a blob may replace what the client sees (rscc, ...). */
static void add_property(struct response *r, const char *name, struct span stored, struct span sas)
{
	response_header(r, name, sas.n > 0 ? sas : stored);
}

static void add_copied(const struct blob_record *b, struct response *r)
{
	char progress[64];
	if (b->copied.id.n == 0)
		return;
	(void)snprintf(progress, sizeof(progress), "%llu/%llu", (unsigned long long)b->size,
		(unsigned long long)b->size);
	response_header(r, "x-ms-copy-id", b->copied.id);
	response_header(r, "x-ms-copy-source", b->copied.source);
	response_header_str(r, "x-ms-copy-status", "success");
	response_header_str(r, "x-ms-copy-progress", progress);
	blob_date_header("x-ms-copy-completion-time", b->copied.when, r);
}

void blob_properties_add(const struct request_context *c, const struct blob_record *b, bool ranged,
	struct response *r)
{
	const struct blob_properties *p = &b->properties;
	const struct sas *s = &c->access.sas;
	char number[32];
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
	response_header_str(r, "x-ms-blob-type", blob_type_name(b->type));
	if (b->type == BLOB_PAGES) {
		(void)snprintf(number, sizeof(number), "%lld", (long long)b->sequence);
		response_header_str(r, "x-ms-blob-sequence-number", number);
	}
	if (b->type == BLOB_APPEND) {
		(void)snprintf(number, sizeof(number), "%llu", (unsigned long long)b->blocks);
		response_header_str(r, "x-ms-blob-committed-block-count", number);
	}
	lease_headers_add(c, &b->lease, r);
	add_copied(b, r);
	tier_headers_add(b, r);
	response_header_str(r, "x-ms-server-encrypted", "true");
	metadata_to_headers(b->metadata, r);
}

enum err blob_range_read(struct request_context *c, uint64_t size, struct blob_range *ret)
{
	struct span s = request_header(c->request, "x-ms-range");
	return blob_range_parse(c, s.n > 0 ? s : request_header(c->request, "Range"), size, ret);
}

enum err blob_range_parse(
	struct request_context *c, struct span s, uint64_t size, struct blob_range *ret)
{
	uint64_t last = UINT64_MAX;
	*ret = (struct blob_range){ .n = size };
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

void blob_range_header(const struct blob_range *range, uint64_t size, struct response *r)
{
	char text[100];
	(void)snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)range->first,
		(unsigned long long)(range->first + range->n - 1), (unsigned long long)size);
	response_header_str(r, "Content-Range", text);
}
