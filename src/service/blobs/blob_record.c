/* SPDX-License-Identifier: MIT
 * Members that have their default are left out. */
#include "service/blobs/blob_record.h"

#include "base/text.h"
#include "model/metadata.h"

#include <inttypes.h>
#include <string.h>

static const char *const types[] = { "none", "block", "page", "append" };

struct text_member {
	const char *name;
	size_t at; /* in struct blob_properties */
};
static const struct text_member texts[] = {
	{ "content-type", offsetof(struct blob_properties, content_type) },
	{ "content-encoding", offsetof(struct blob_properties, encoding) },
	{ "content-language", offsetof(struct blob_properties, language) },
	{ "cache-control", offsetof(struct blob_properties, cache_control) },
	{ "content-disposition", offsetof(struct blob_properties, disposition) },
	{ "content-md5", offsetof(struct blob_properties, md5) },
};

void blob_record_write(const struct blob_record *r, struct buf *out)
{
	buf_addf(out, "type:%s\netag:%" PRId64 "\nmade:%" PRId64 "\nsize:%" PRIu64 "\n",
		types[r->type], r->etag, r->made, r->size);
	if (r->extent != 0)
		buf_addf(out, "extent:%" PRIu64 "\n", r->extent);
	if (r->pages != 0)
		buf_addf(out, "pages:%" PRIu64 "\n", r->pages);
	if (r->blocks != 0)
		buf_addf(out, "blocks:%" PRIu64 "\n", r->blocks);
	if (r->sequence != 0)
		buf_addf(out, "sequence:%" PRId64 "\n", r->sequence);
	if (r->tier != TIER_UNSET)
		buf_addf(out, "tier:%d\ntiered:%" PRId64 "\n", (int)r->tier, r->tier_set);
	if (r->lease.id.n > 0) {
		buf_add_str(out, "lease:");
		lease_write(&r->lease, out);
		buf_add_char(out, '\n');
	}
	if (r->copied.id.n > 0) {
		buf_add_str(out, "copy:");
		buf_add_span(out, r->copied.id);
		buf_addf(out, " %" PRId64 " ", r->copied.when);
		buf_add_span(out, r->copied.source);
		buf_add_char(out, '\n');
	}
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const struct span *s = (const void *)((const char *)&r->properties + texts[i].at);
		if (s->n > 0) {
			buf_addf(out, "%s:", texts[i].name);
			buf_add_span(out, *s);
			buf_add_char(out, '\n');
		}
	}
	buf_add_char(out, '\n');
	buf_add_span(out, r->metadata);
	buf_add_char(out, '\n');
	buf_add_span(out, r->content);
}

static bool read_number(struct span value, int64_t *ret)
{
	return text_to_i64(value, ret) && *ret >= 0;
}

static bool read_type(struct span value, enum blob_type *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		*ret = (enum blob_type)i;
		if (span_is(value, types[i]))
			return true;
	}
	return false;
}

static bool read_text(const struct metadata_pair *p, struct blob_properties *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (span_is(p->name, texts[i].name)) {
			*(struct span *)(void *)((char *)ret + texts[i].at) = p->value;
			return true;
		}
	return false;
}

static bool read_tier(struct span value, enum blob_tier *ret)
{
	int64_t v;
	bool ok = read_number(value, &v) && v <= TIER_ARCHIVE;
	*ret = ok ? (enum blob_tier)v : TIER_UNSET;
	return ok;
}

static bool read_copied(struct span text, struct blob_copied *ret)
{
	ret->id = span_take(&text, ' ');
	struct span when = span_take(&text, ' ');
	ret->source = text;
	return ret->id.n > 0 && read_number(when, &ret->when);
}

/* A number of the record, by its name. */
static int64_t *number_of(struct blob_record *r, struct span name)
{
	return span_is(name, "etag")        ? &r->etag
		: span_is(name, "made")     ? &r->made
		: span_is(name, "size")     ? (int64_t *)&r->size
		: span_is(name, "extent")   ? (int64_t *)&r->extent
		: span_is(name, "pages")    ? (int64_t *)&r->pages
		: span_is(name, "blocks")   ? (int64_t *)&r->blocks
		: span_is(name, "sequence") ? &r->sequence
		: span_is(name, "tiered")   ? &r->tier_set
					    : NULL;
}

static bool read_member(const struct metadata_pair *p, struct blob_record *ret)
{
	int64_t *number = number_of(ret, p->name);
	if (span_is(p->name, "type"))
		return read_type(p->value, &ret->type);
	if (span_is(p->name, "lease"))
		return lease_read(p->value, &ret->lease);
	if (span_is(p->name, "tier"))
		return read_tier(p->value, &ret->tier);
	if (span_is(p->name, "copy"))
		return read_copied(p->value, &ret->copied);
	if (number != NULL)
		return read_number(p->value, number);
	return read_text(p, &ret->properties);
}

/* Takes the lines up to an empty one, and that one. */
static bool take_lines(struct span *text, struct span *ret)
{
	size_t n = 0;
	while (n < text->n && text->p[n] != '\n') {
		const char *end = memchr(text->p + n, '\n', text->n - n);
		if (end == NULL)
			return false;
		n = (size_t)(end - text->p) + 1;
	}
	if (n >= text->n)
		return false;
	*ret = span_make(text->p, n);
	*text = span_make(text->p + n + 1, text->n - n - 1);
	return true;
}

enum err blob_record_read(struct span text, struct blob_record *ret)
{
	struct span lines;
	struct metadata_pair p;
	const struct span none = SPAN_LIT("");
	*ret = (struct blob_record){ .properties = { none, none, none, none, none, none } };
	if (!take_lines(&text, &lines) || !take_lines(&text, &ret->metadata))
		return ERR_CORRUPT;
	while (metadata_next(&lines, &p))
		if (!read_member(&p, ret))
			return ERR_CORRUPT;
	ret->content = text;
	bool small = ret->extent == 0 && ret->size == text.n && text.n <= BLOB_INLINE_BYTES;
	bool large = ret->extent != 0 && text.n == 0;
	bool needs_extent = ret->type == BLOB_PAGES || ret->type == BLOB_APPEND || ret->blocks > 0;
	return (small && !needs_extent) || large ? ERR_OK : ERR_CORRUPT;
}
