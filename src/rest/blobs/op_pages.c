/* SPDX-License-Identifier: MIT
 * Page blobs: create, put and clear pages, page ranges, resize and sequence numbers. */
#include "base/crc64.h"
#include "base/text.h"
#include "codec/xml.h"
#include "model/limits.h"
#include "rest/blobs/blob_body.h"
#include "rest/blobs/blob_headers.h"
#include "rest/blobs/blob_request.h"
#include "rest/blobs/body_source.h"
#include "rest/blobs/ops.h"
#include "rest/core/metadata_headers.h"
#include "service/blobs/page_diff.h"
#include "service/blobs/page_write.h"
#include "service/blobs/pages.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#define RANGES_MAX 10000 /* in one page of a list */

/* ---- headers ---- */

static bool is_word(struct span s, const char *word)
{
	return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

static enum err read_number(
	struct request_context *c, const char *header, bool *ret_has, int64_t *ret)
{
	struct span s = request_header(c->request, header);
	*ret_has = s.n > 0;
	if (s.n == 0 || (text_to_i64(s, ret) && *ret >= 0))
		return ERR_OK;
	return err_set(
		&c->detail, ERR_HEADER_INVALID, "%s is a number from 0 to 2^63 - 1.", header);
}

static enum err missing(struct request_context *c, const char *header)
{
	return err_set(&c->detail, ERR_HEADER_MISSING,
		"A required HTTP header was not specified: %s.", header);
}

static enum err read_size(struct request_context *c, bool *ret_has, uint64_t *ret)
{
	int64_t size = 0;
	enum err e = read_number(c, "x-ms-blob-content-length", ret_has, &size);
	*ret = (uint64_t)size;
	if (e == ERR_OK && (*ret > PAGE_BLOB_MAX_BYTES || *ret % BLOB_PAGE_BYTES != 0))
		return err_set(&c->detail, ERR_HEADER_INVALID,
			"x-ms-blob-content-length is a multiple of 512, and at most 8 TiB.");
	return e;
}

static enum err read_sequence_conditions(struct request_context *c, struct sequence_conditions *ret)
{
	*ret = (struct sequence_conditions){ 0 };
	enum err e = read_number(c, "x-ms-if-sequence-number-le", &ret->has_le, &ret->le);
	if (e == ERR_OK)
		e = read_number(c, "x-ms-if-sequence-number-lt", &ret->has_lt, &ret->lt);
	return e == ERR_OK ? read_number(c, "x-ms-if-sequence-number-eq", &ret->has_eq, &ret->eq)
			   : e;
}

static void add_sequence(int64_t number, struct response *r)
{
	char text[32];
	(void)snprintf(text, sizeof(text), "%" PRId64, number);
	response_header_str(r, "x-ms-blob-sequence-number", text);
}

static struct page_target target_of(
	struct request_context *c, uint64_t container, const struct blob_conditions *conditions)
{
	return (struct page_target){ .service = c->service,
		.origin = ORIGIN_REST,
		.container = container,
		.name = blob_request(c)->name,
		.conditions = conditions };
}

/* ---- Put Blob ---- */

enum err op_put_page_blob(struct request_context *c, const struct blob_conditions *conditions,
	uint64_t container, const struct blob_properties *properties, struct span metadata,
	int64_t *ret_etag)
{
	struct page_target target = target_of(c, container, conditions);
	struct page_blob_new to = { .properties = *properties, .metadata = metadata };
	struct page_result now = { 0 };
	bool has_size, has_sequence;
	enum err e = read_size(c, &has_size, &to.size);
	if (e == ERR_OK && !has_size)
		e = missing(c, "x-ms-blob-content-length");
	if (e == ERR_OK)
		e = read_number(c, "x-ms-blob-sequence-number", &has_sequence, &to.sequence);
	if (e == ERR_OK)
		e = page_blob_create(&target, &to, &now, &c->detail);
	*ret_etag = now.etag;
	return e;
}

/* ---- Put Page ---- */

/* bytes=FIRST-LAST, which is required. */
static enum err read_page_range(struct request_context *c, uint64_t *ret_first, uint64_t *ret_n)
{
	struct blob_range range;
	enum err e = blob_range_read(c, UINT64_MAX, &range);
	if (e != ERR_OK)
		return e;
	if (!range.given)
		return missing(c, "Range");
	*ret_first = range.first;
	*ret_n = range.n;
	bool whole = range.first % BLOB_PAGE_BYTES == 0 && range.n % BLOB_PAGE_BYTES == 0;
	return whole && range.first + range.n <= PAGE_BLOB_MAX_BYTES ? ERR_OK : ERR_PAGE_RANGE;
}

static enum err take_part(void *arg, struct span bytes)
{
	buf_add_span(arg, bytes);
	return buf_ok(arg) ? ERR_OK : ERR_NO_MEMORY;
}

static enum err write_pages(struct request_context *c, const struct page_target *target,
	uint64_t first, uint64_t n, struct page_result *now, struct response *r)
{
	struct blob_body body = { 0 };
	struct buf taken = BUF_INIT(PAGES_WRITE_MAX);
	bool source = body_source_given(c->request);
	enum err e = source ? body_source_read(c, PAGES_WRITE_MAX, take_part, &taken) : ERR_OK;
	struct span bytes = source ? buf_span(&taken) : c->request->body;
	if (e == ERR_OK && (bytes.n > PAGES_WRITE_MAX || n > PAGES_WRITE_MAX))
		e = ERR_BODY_TOO_LARGE;
	if (e == ERR_OK && bytes.n != n)
		e = ERR_PAGE_RANGE;
	if (e == ERR_OK)
		e = blob_body_sums(c, bytes, &body);
	if (e == ERR_OK)
		e = pages_write(target, first, bytes, now, &c->detail);
	if (e == ERR_OK)
		body_sums_response(c, &body.sums, r);
	buf_fini(&taken);
	return e;
}

enum err op_put_page(struct request_context *c, struct response *r)
{
	struct span how = request_header(c->request, "x-ms-page-write");
	struct sequence_conditions sequence;
	struct blob_conditions conditions;
	struct page_result now = { 0 };
	uint64_t container, first = 0, n = 0;
	bool clears = is_word(how, "clear");
	if (how.n == 0)
		return missing(c, "x-ms-page-write");
	if (!clears && !is_word(how, "update"))
		return err_set(
			&c->detail, ERR_HEADER_INVALID, "x-ms-page-write is update or clear.");
	enum err e = read_page_range(c, &first, &n);
	if (e == ERR_OK)
		e = read_sequence_conditions(c, &sequence);
	if (e == ERR_OK)
		e = blob_request_begin(c, &conditions, &container);
	if (e == ERR_OK && clears && c->request->body.n > 0)
		e = err_set(&c->detail, ERR_HEADER_INVALID, "A clear has no body.");
	if (e != ERR_OK)
		return e;
	struct page_target target = target_of(c, container, &conditions);
	target.sequence = &sequence;
	e = clears ? pages_clear(&target, first, n, &now, &c->detail)
		   : write_pages(c, &target, first, n, &now, r);
	blob_etag_headers(now.etag, r);
	add_sequence(now.sequence, r);
	if (!clears)
		response_header_str(r, "x-ms-request-server-encrypted", "true");
	r->status = 201;
	return e;
}

/* ---- Set Blob Properties ---- */

static enum err read_action(struct request_context *c, struct page_blob_edit *ret)
{
	struct span s = request_header(c->request, "x-ms-sequence-number-action");
	bool has_number;
	enum err e = read_number(c, "x-ms-blob-sequence-number", &has_number, &ret->sequence);
	ret->action = is_word(s, "max")   ? SEQUENCE_MAX
		: is_word(s, "update")    ? SEQUENCE_UPDATE
		: is_word(s, "increment") ? SEQUENCE_INCREMENT
					  : SEQUENCE_KEEP;
	if (e == ERR_OK && s.n > 0 && ret->action == SEQUENCE_KEEP)
		e = err_set(&c->detail, ERR_HEADER_INVALID,
			"x-ms-sequence-number-action is max, update or increment.");
	bool wanted = ret->action == SEQUENCE_MAX || ret->action == SEQUENCE_UPDATE;
	if (e == ERR_OK && wanted && !has_number)
		e = missing(c, "x-ms-blob-sequence-number");
	if (e == ERR_OK && !wanted && has_number)
		e = err_set(&c->detail, ERR_HEADER_INVALID,
			"x-ms-blob-sequence-number needs x-ms-sequence-number-action max or "
			"update.");
	return e;
}

bool op_edits_page_blob(const struct request_context *c)
{
	return request_header(c->request, "x-ms-blob-content-length").p != NULL ||
		request_header(c->request, "x-ms-sequence-number-action").p != NULL ||
		request_header(c->request, "x-ms-blob-sequence-number").p != NULL;
}

enum err op_edit_page_blob(struct request_context *c, const struct blob_conditions *conditions,
	uint64_t container, const struct blob_properties *properties, struct response *r,
	int64_t *ret_etag)
{
	struct page_target target = target_of(c, container, conditions);
	const struct blob_properties *p = properties;
	struct page_blob_edit to = { 0 };
	struct page_result now = { 0 };
	enum err e = read_size(c, &to.resize, &to.size);
	/* Alone, size and number leave the other properties as they are. */
	if (p->content_type.n + p->encoding.n + p->language.n + p->cache_control.n +
			p->disposition.n + p->md5.n >
		0)
		to.properties = properties;
	if (e == ERR_OK)
		e = read_action(c, &to);
	if (e == ERR_OK)
		e = page_blob_edit(&target, &to, &now, &c->detail);
	*ret_etag = now.etag;
	add_sequence(now.sequence, r);
	return e;
}

/* ---- Get Page Ranges ---- */

static void add_u64(struct buf *out, uint64_t v)
{
	char text[20];
	size_t n = sizeof(text);
	do
		text[--n] = (char)('0' + v % 10);
	while ((v /= 10) > 0);
	buf_add(out, text + n, sizeof(text) - n);
}

static bool add_range(void *arg, uint64_t first, uint64_t last)
{
	struct buf *out = arg;
	buf_add_str(out, "<PageRange><Start>");
	add_u64(out, first);
	buf_add_str(out, "</Start><End>");
	add_u64(out, last);
	buf_add_str(out, "</End></PageRange>");
	return buf_ok(out);
}

/* The marker is the offset at which the page begins. */
static enum err read_marker(struct request_context *c, uint64_t *from)
{
	struct span marker;
	uint64_t at;
	if (!context_param(c, "marker", &marker) || marker.n == 0)
		return ERR_OK;
	if (!text_to_u64(marker, &at) || at % BLOB_PAGE_BYTES != 0)
		return err_set(&c->detail, ERR_QUERY_VALUE,
			"%s 'marker' is not the marker of a list.", err_text(ERR_QUERY_VALUE));
	*from = at > *from ? at : *from;
	return ERR_OK;
}

static bool add_change(void *arg, bool cleared, uint64_t first, uint64_t last)
{
	struct buf *out = arg;
	if (!cleared)
		return add_range(arg, first, last);
	buf_add_str(out, "<ClearRange><Start>");
	add_u64(out, first);
	buf_add_str(out, "</Start><End>");
	add_u64(out, last);
	buf_add_str(out, "</End></ClearRange>");
	return buf_ok(out);
}

/* Finds the extent of the snapshot in prevsnapshot; 0 without the parameter. */
static enum err find_before(struct request_context *c, const struct blob_record *b, uint64_t *ret)
{
	struct blob_info before = { 0 };
	struct span time, own, key;
	uint64_t id;
	*ret = 0;
	if (!context_param(c, "prevsnapshot", &time))
		return ERR_OK;
	if (context_param(c, "snapshot", &own) && span_cmp(time, own) > 0)
		return ERR_OLD_SNAPSHOT_NEWER;
	enum err e = blob_snapshot_key(c, blob_request(c)->name, "prevsnapshot", &key);
	if (e == ERR_OK)
		e = rest_collection_id(c, &id);
	if (e == ERR_OK)
		e = blob_find(c->service, id, key, &before);
	if (e != ERR_OK)
		return e == ERR_BLOB_NOT_FOUND ? ERR_OLD_SNAPSHOT_MISSING : e;
	/* A blob that was put anew has another time of its making. */
	bool same = before.record.type == BLOB_PAGES && before.record.made == b->made;
	*ret = before.record.extent;
	blob_info_fini(&before);
	return same ? ERR_OK : ERR_OLD_SNAPSHOT_OTHER;
}

/* Without maxresults there are no pages of the list, and no marker. */
static enum err list_ranges(
	struct request_context *c, const struct blob_record *b, struct response *r)
{
	uint64_t before;
	bool paged = context_param(c, "maxresults", &(struct span){ 0 });
	struct blob_range range = { .n = b->size };
	uint64_t next;
	int64_t max;
	enum err e = param_number(c, "maxresults", 1, INT64_MAX, INT64_MAX, &max);
	if (e == ERR_OK)
		e = blob_range_read(c, b->size, &range);
	uint64_t end = range.first + range.n;
	if (e == ERR_OK)
		e = read_marker(c, &range.first);
	if (e == ERR_OK)
		e = find_before(c, b, &before);
	if (e != ERR_OK)
		return e;
	max = paged && max > RANGES_MAX ? RANGES_MAX : max;
	buf_add_str(&r->body, XML_DECLARATION "<PageList>");
	if (before != 0)
		e = pages_diff(c->service, before, b->extent, range.first, end, (uint64_t)max,
			add_change, &r->body, &next);
	else
		e = pages_list(c->service, b->extent, range.first, end, (uint64_t)max, add_range,
			&r->body, &next);
	if (paged && next < end)
		buf_addf(&r->body, "<NextMarker>%" PRIu64 "</NextMarker>", next);
	else if (paged)
		buf_add_str(&r->body, "<NextMarker/>");
	buf_add_str(&r->body, "</PageList>");
	if (e == ERR_OK && buf_full(&r->body) == ERR_BODY_TOO_LARGE)
		e = err_set(&c->detail, ERR_TIMED_OUT,
			"The list is too long for one response: ask with maxresults, or for a "
			"smaller range.");
	return e;
}

enum err op_get_page_ranges(struct request_context *c, struct response *r)
{
	struct blob_info b = { 0 };
	char size[32];
	if (request_header(c->request, "x-ms-previous-snapshot-url").p != NULL)
		return ERR_NOT_SUPPORTED;
	enum err e = blob_request_find(c, &b);
	if (e != ERR_OK)
		return e;
	e = b.record.type == BLOB_PAGES ? list_ranges(c, &b.record, r) : ERR_BLOB_TYPE;
	blob_etag_headers(b.record.etag, r);
	(void)snprintf(size, sizeof(size), "%" PRIu64, b.record.size);
	response_header_str(r, "x-ms-blob-content-length", size);
	response_header_str(r, "Content-Type", "application/xml");
	blob_info_fini(&b);
	r->status = 200;
	return e == ERR_GONE ? ERR_BLOB_NOT_FOUND : e;
}
