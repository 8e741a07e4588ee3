/* SPDX-License-Identifier: MIT
 * List Blobs.  The marker is the name with which the page begins, in base64: a name may have
 * characters that XML lacks. */
#include "base/crypto.h"
#include "codec/http_date.h"
#include "codec/uri.h"
#include "codec/xml.h"
#include "rest/blobs/blob_headers.h"
#include "rest/blobs/blob_request.h"
#include "rest/blobs/lease_headers.h"
#include "rest/blobs/ops.h"
#include "rest/blobs/tier_headers.h"
#include "rest/core/metadata_headers.h"
#include "service/blobs/blobs.h"

#define LIST_MAX 5000
#define NAME_MAX_BYTES 4096

struct list {
	struct buf *out;
	bool metadata, copy;
	int64_t now; /* the states of leases are as of then */
};

/* U+FFFE and U+FFFF: the other characters that XML lacks are in no name. */
static bool is_beyond_xml(struct span name)
{
	return span_find(name, SPAN_LIT("\xef\xbf\xbe")) < name.n ||
		span_find(name, SPAN_LIT("\xef\xbf\xbf")) < name.n;
}

static void add_name(struct buf *out, struct span name)
{
	if (!is_beyond_xml(name)) {
		xml_add_element(out, "Name", name);
		return;
	}
	buf_add_str(out, "<Name Encoded=\"true\">");
	percent_encode_value(name, out);
	buf_add_str(out, "</Name>");
}

static void add_optional(struct buf *out, const char *name, struct span value)
{
	if (value.n > 0) {
		buf_addf(out, "<%s>", name);
		xml_add_message(out, value);
		buf_addf(out, "</%s>", name);
	} else {
		buf_addf(out, "<%s />", name);
	}
}

static void add_copied(const struct list *l, const struct blob_record *b)
{
	if (!l->copy || b->copied.id.n == 0)
		return;
	xml_add_element(l->out, "CopyId", b->copied.id);
	xml_add_element(l->out, "CopySource", b->copied.source);
	buf_addf(l->out,
		"<CopyStatus>success</CopyStatus><CopyProgress>%llu/%llu</CopyProgress>"
		"<CopyCompletionTime>",
		(unsigned long long)b->size, (unsigned long long)b->size);
	http_date_add(l->out, b->copied.when);
	buf_add_str(l->out, "</CopyCompletionTime>");
}

static void add_properties(const struct list *l, const struct blob_record *b)
{
	struct buf *out = l->out;
	const struct blob_properties *p = &b->properties;
	buf_add_str(out, "<Properties><Creation-Time>");
	http_date_add(out, b->made);
	buf_add_str(out, "</Creation-Time><Last-Modified>");
	http_date_add(out, b->etag);
	buf_add_str(out, "</Last-Modified><Etag>");
	blob_etag_add(b->etag, out);
	buf_addf(out, "</Etag><Content-Length>%llu</Content-Length>", (unsigned long long)b->size);
	add_optional(out, "Content-Type", p->content_type);
	add_optional(out, "Content-Encoding", p->encoding);
	add_optional(out, "Content-Language", p->language);
	add_optional(out, "Content-MD5", p->md5);
	add_optional(out, "Cache-Control", p->cache_control);
	add_optional(out, "Content-Disposition", p->disposition);
	if (b->type == BLOB_PAGES)
		buf_addf(out, "<x-ms-blob-sequence-number>%lld</x-ms-blob-sequence-number>",
			(long long)b->sequence);
	buf_addf(out, "<BlobType>%s</BlobType>", blob_type_name(b->type));
	lease_xml_add(&b->lease, l->now, out);
	add_copied(l, b);
	tier_xml_add(b, out);
	buf_add_str(out, "<ServerEncrypted>true</ServerEncrypted></Properties>");
}

static bool add_blob(void *arg, const struct blob_listed *b)
{
	const struct list *l = arg;
	buf_add_str(l->out, b->is_prefix ? "<BlobPrefix>" : "<Blob>");
	add_name(l->out, b->name);
	if (b->snapshot.n > 0)
		xml_add_element(l->out, "Snapshot", b->snapshot);
	if (!b->is_prefix) {
		add_properties(l, b->record);
		if (l->metadata && b->record->metadata.n > 0)
			metadata_to_xml(b->record->metadata, l->out);
	}
	buf_add_str(l->out, b->is_prefix ? "</BlobPrefix>" : "</Blob>");
	return true;
}

/* Reads include=a,b. */
static enum err read_include(struct request_context *c, struct blob_listing *how, struct list *l)
{
	static const char *const known[] = { "snapshots", "copy", "deleted", "tags", "versions",
		"deletedwithversions", "immutabilitypolicy", "legalhold", "permissions" };
	struct span rest = context_param_or_empty(c, "include");
	while (rest.n > 0) {
		struct span word = span_take(&rest, ',');
		bool ok = false;
		l->metadata = l->metadata || span_is(word, "metadata");
		l->copy = l->copy || span_is(word, "copy");
		how->snapshots = how->snapshots || span_is(word, "snapshots");
		how->uncommitted = how->uncommitted || span_is(word, "uncommittedblobs");
		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			ok = ok || span_is(word, known[i]);
		if (!ok && !span_is(word, "metadata") && !span_is(word, "uncommittedblobs"))
			return err_set(&c->detail, ERR_QUERY_VALUE, "%s 'include' has '%.*s'.",
				err_text(ERR_QUERY_VALUE), (int)(word.n < 40 ? word.n : 40),
				word.p);
	}
	return ERR_OK;
}

static enum err read_marker(struct request_context *c, struct buf *name)
{
	if (base64_decode(context_param_or_empty(c, "marker"), name) && buf_ok(name))
		return ERR_OK;
	return err_set(&c->detail, ERR_QUERY_VALUE, "%s 'marker' is not the marker of a list.",
		err_text(ERR_QUERY_VALUE));
}

static void begin_list(struct request_context *c, const struct blob_listing *how, struct buf *out)
{
	buf_add_str(out, XML_DECLARATION "<EnumerationResults ServiceEndpoint=\"");
	xml_add_message(out, c->url.base);
	buf_add_str(out, "\" ContainerName=\"");
	xml_add_message(out, c->container);
	buf_add_str(out, "\">");
	add_optional(out, "Prefix", how->prefix);
	add_optional(out, "Marker", context_param_or_empty(c, "marker"));
	buf_addf(out, "<MaxResults>%zu</MaxResults>", how->max);
	if (how->delimiter.n > 0)
		add_optional(out, "Delimiter", how->delimiter);
	buf_add_str(out, "<Blobs>");
}

static enum err list(struct request_context *c, uint64_t id, struct response *r)
{
	struct list l = { .out = &r->body, .now = service_now(c->service) };
	struct blob_listing how = { .prefix = context_param_or_empty(c, "prefix"),
		.delimiter = context_param_or_empty(c, "delimiter") };
	struct buf marker = BUF_INIT(NAME_MAX_BYTES), next = BUF_INIT(NAME_MAX_BYTES);
	int64_t max;
	enum err e = param_number(c, "maxresults", 1, INT64_MAX, LIST_MAX, &max);
	if (e == ERR_OK)
		e = read_include(c, &how, &l);
	if (e == ERR_OK)
		e = read_marker(c, &marker);
	if (e == ERR_OK) {
		how.max = max < LIST_MAX ? (size_t)max : LIST_MAX;
		how.marker = marker.len > 0 ? buf_span(&marker) : SPAN_LIT("");
		begin_list(c, &how, &r->body);
		e = blob_list(c->service, id, &how, add_blob, &l, &next);
		buf_add_str(&r->body, "</Blobs>");
		if (next.len > 0) {
			buf_add_str(&r->body, "<NextMarker>");
			base64_encode(buf_span(&next), &r->body);
			buf_add_str(&r->body, "</NextMarker>");
		} else {
			buf_add_str(&r->body, "<NextMarker />");
		}
		buf_add_str(&r->body, "</EnumerationResults>");
	}
	buf_fini(&marker);
	buf_fini(&next);
	return e;
}

enum err op_list_blobs(struct request_context *c, struct response *r)
{
	uint64_t id;
	enum err e = rest_collection_id(c, &id);
	if (e == ERR_OK)
		e = list(c, id, r);
	r->status = 200;
	response_header_str(r, "Content-Type", "application/xml");
	return e;
}
