/* SPDX-License-Identifier: MIT
 * Members that have their default are left out. */
#include "service/blobs/blob_record.h"

#include "base/text.h"
#include "model/metadata.h"

#include <inttypes.h>
#include <string.h>

static const char *const types[] = { "none", "block" };

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

static bool read_member(const struct metadata_pair *p, struct blob_record *ret)
{
	int64_t number;
	bool ok = true;
	if (span_is(p->name, "type"))
		return read_type(p->value, &ret->type);
	if (span_is(p->name, "etag"))
		return read_number(p->value, &ret->etag);
	if (span_is(p->name, "made"))
		return read_number(p->value, &ret->made);
	if (span_is(p->name, "size")) {
		ok = read_number(p->value, &number);
		ret->size = ok ? (uint64_t)number : 0;
	} else if (span_is(p->name, "extent")) {
		ok = read_number(p->value, &number);
		ret->extent = ok ? (uint64_t)number : 0;
	} else {
		ok = read_text(p, &ret->properties);
	}
	return ok;
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
	return small || (ret->extent != 0 && text.n == 0) ? ERR_OK : ERR_CORRUPT;
}
