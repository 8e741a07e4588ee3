/* SPDX-License-Identifier: MIT */
#include "rest/blobs/body_source.h"

#include "model/lease.h"
#include "rest/blobs/blob_headers.h"
#include "rest/blobs/copy_source.h"
#include "service/blobs/blobs.h"
#include "service/blobs/conditions.h"
#include "service/blobs/tiers.h"

#include <stdlib.h>

#define PART_BYTES ((size_t)1 << 20)

static enum err check_source(struct request_context *c, const struct copy_source *from,
	const struct blob_record *b, uint64_t limit, struct blob_range *ret)
{
	if (b->tier == TIER_ARCHIVE)
		return ERR_BLOB_ARCHIVED;
	if (blob_conditions_read(&from->conditions, b->etag) != ERR_OK ||
		lease_check_read(&b->lease, from->conditions.lease, service_now(c->service)) !=
			ERR_OK)
		return ERR_SOURCE_CONDITION;
	enum err e =
		blob_range_parse(c, request_header(c->request, "x-ms-source-range"), b->size, ret);
	return e == ERR_OK && ret->n > limit ? ERR_BODY_TOO_LARGE : e;
}

static enum err read_parts(struct request_context *c, const struct blob_record *b,
	const struct blob_range *range, body_part_fn fn, void *arg)
{
	char *part = malloc(PART_BYTES);
	enum err e = part != NULL ? ERR_OK : ERR_NO_MEMORY;
	uint64_t at = range->first, end = range->first + range->n;
	while (at < end && e == ERR_OK) {
		size_t n = end - at < PART_BYTES ? (size_t)(end - at) : PART_BYTES;
		e = blob_read(c->service, b, at, part, n);
		if (e == ERR_OK)
			e = fn(arg, span_make(part, n));
		at += n;
	}
	free(part);
	return e;
}

/* Pages may be written between two reads. */
static enum err check_unchanged(
	struct request_context *c, const struct copy_source *from, int64_t etag)
{
	struct blob_info now = { 0 };
	enum err e = blob_find(c->service, from->container, from->name, &now);
	bool same = e == ERR_OK && now.record.etag == etag;
	blob_info_fini(&now);
	return same
		? ERR_OK
		: err_set(&c->detail, ERR_THROTTLED, "the source was changed while it was copied");
}

enum err body_source_read(struct request_context *c, uint64_t limit, body_part_fn fn, void *arg)
{
	struct copy_source from;
	struct blob_info b = { 0 };
	struct blob_range range;
	if (c->request->body.n > 0)
		return err_set(&c->detail, ERR_HEADER_INVALID,
			"A request with x-ms-copy-source has no body.");
	enum err e = copy_source_read(c, &from);
	if (e == ERR_OK)
		e = blob_find(c->service, from.container, from.name, &b);
	if (e != ERR_OK)
		return e;
	e = check_source(c, &from, &b.record, limit, &range);
	if (e == ERR_OK)
		e = read_parts(c, &b.record, &range, fn, arg);
	if (e == ERR_OK || e == ERR_GONE)
		e = check_unchanged(c, &from, b.record.etag);
	blob_info_fini(&b);
	return e;
}
