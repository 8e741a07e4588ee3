/* SPDX-License-Identifier: MIT
 * Queues: list, create, delete, metadata and stored access policies. */
#include "codec/xml.h"
#include "rest/core/acl.h"
#include "rest/queues/ops.h"
#include "service/queue/queues.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LIST_MAX 5000
#define META_PREFIX "x-ms-meta-"

/* ---- metadata ---- */

static enum err read_metadata(struct request_context *c, struct buf *ret)
{
	static const struct span prefix = SPAN_LIT(META_PREFIX);
	enum err e = ERR_OK;
	for (size_t i = 0; i < c->request->nheaders && e == ERR_OK; i++) {
		struct span name = c->request->headers[i].name;
		if (name.n < prefix.n || strncasecmp(name.p, prefix.p, prefix.n) != 0)
			continue;
		e = metadata_add(ret, span_make(name.p + prefix.n, name.n - prefix.n),
			c->request->headers[i].value, &c->detail);
	}
	return e;
}

static void add_metadata_headers(struct span metadata, struct response *r)
{
	struct metadata_pair pair;
	while (metadata_next(&metadata, &pair)) {
		char name[sizeof(META_PREFIX) + LIMIT_METADATA_BYTES];
		(void)snprintf(
			name, sizeof(name), META_PREFIX "%.*s", (int)pair.name.n, pair.name.p);
		response_header(r, name, pair.value);
	}
}

static void add_metadata_xml(struct span metadata, struct buf *out)
{
	struct metadata_pair pair;
	buf_add_str(out, "<Metadata>");
	while (metadata_next(&metadata, &pair)) {
		buf_addf(out, "<%.*s>", (int)pair.name.n, pair.name.p);
		xml_add_message(out, pair.value);
		buf_addf(out, "</%.*s>", (int)pair.name.n, pair.name.p);
	}
	buf_add_str(out, "</Metadata>");
}

/* ---- the list ---- */

struct list {
	struct buf *out;
	bool metadata;
};

static bool add_queue(void *arg, const struct queue_info *q)
{
	const struct list *l = arg;
	buf_add_str(l->out, "<Queue>");
	xml_add_element(l->out, "Name", q->name);
	if (l->metadata)
		add_metadata_xml(q->metadata, l->out);
	buf_add_str(l->out, "</Queue>");
	return true;
}

static struct span param(const struct request_context *c, const char *name)
{
	struct span value;
	return context_param(c, name, &value) ? value : SPAN_LIT("");
}

enum err op_list_queues(struct request_context *c, struct response *r)
{
	struct span prefix = param(c, "prefix"), marker = param(c, "marker");
	struct span include = param(c, "include");
	struct list l = { &r->body, span_is(include, "metadata") };
	struct buf next = BUF_INIT(1024);
	int64_t max;
	if (include.n > 0 && !l.metadata)
		return err_set(&c->detail, ERR_QUERY_VALUE, "%s 'include' is 'metadata'.",
			err_text(ERR_QUERY_VALUE));
	enum err e = queue_request_number(c, "maxresults", 1, INT32_MAX, LIST_MAX, &max);
	if (e != ERR_OK)
		return e;
	max = max < LIST_MAX ? max : LIST_MAX;
	buf_add_str(&r->body, XML_DECLARATION "<EnumerationResults ServiceEndpoint=\"");
	buf_add_span(&r->body, c->url.base);
	buf_add_str(&r->body, "\">");
	xml_add_element(&r->body, "Prefix", prefix);
	xml_add_element(&r->body, "Marker", marker);
	buf_addf(&r->body, "<MaxResults>%lld</MaxResults><Queues>", (long long)max);
	e = queue_list(
		c->service, c->secrets.id, prefix, marker, (size_t)max, add_queue, &l, &next);
	buf_add_str(&r->body, "</Queues>");
	xml_add_element(&r->body, "NextMarker", buf_span(&next));
	buf_add_str(&r->body, "</EnumerationResults>");
	buf_fini(&next);
	r->status = 200;
	response_header_str(r, "Content-Type", "application/xml");
	return e;
}

/* ---- one queue ---- */

enum err op_create_queue(struct request_context *c, struct response *r)
{
	struct buf metadata = BUF_INIT(4 * LIMIT_METADATA_BYTES);
	bool created = false;
	enum err e = read_metadata(c, &metadata);
	if (e == ERR_OK)
		e = queue_create(c->service, ORIGIN_REST, c->secrets.id, c->container,
			buf_span(&metadata), &created, &c->detail);
	buf_fini(&metadata);
	r->status = created ? 201 : 204;
	return e;
}

enum err op_delete_queue(struct request_context *c, struct response *r)
{
	uint64_t id;
	enum err e = queue_request_id(c, &id);
	if (e == ERR_OK)
		e = queue_delete(c->service, ORIGIN_REST, id, &c->detail);
	r->status = 204;
	return e;
}

enum err op_get_queue_metadata(struct request_context *c, struct response *r)
{
	struct queue_info q = { 0 };
	char count[24];
	enum err e = queue_find(c->service, c->secrets.id, c->container, &q);
	if (e != ERR_OK)
		return e;
	(void)snprintf(count, sizeof(count), "%llu", (unsigned long long)q.messages);
	response_header_str(r, "x-ms-approximate-messages-count", count);
	response_header_str(r, "Cache-Control", "no-cache");
	add_metadata_headers(q.metadata, r);
	queue_info_fini(&q);
	r->status = 200;
	return ERR_OK;
}

enum err op_set_queue_metadata(struct request_context *c, struct response *r)
{
	struct buf metadata = BUF_INIT(4 * LIMIT_METADATA_BYTES);
	uint64_t id;
	enum err e = queue_request_id(c, &id);
	if (e == ERR_OK)
		e = read_metadata(c, &metadata);
	if (e == ERR_OK)
		e = queue_set_metadata(
			c->service, ORIGIN_REST, id, buf_span(&metadata), &c->detail);
	buf_fini(&metadata);
	r->status = 204;
	return e;
}

enum err op_get_queue_acl(struct request_context *c, struct response *r)
{
	struct queue_info q = { 0 };
	enum err e = queue_find(c->service, c->secrets.id, c->container, &q);
	if (e != ERR_OK)
		return e;
	e = acl_write(c, q.policies, r);
	queue_info_fini(&q);
	return e;
}

enum err op_set_queue_acl(struct request_context *c, struct response *r)
{
	struct buf xml = BUF_INIT(RESPONSE_BODY_LIMIT);
	uint64_t id;
	enum err e = queue_request_id(c, &id);
	if (e == ERR_OK)
		e = acl_read(c, &xml);
	if (e == ERR_OK)
		e = queue_set_policies(c->service, ORIGIN_REST, id, buf_span(&xml), &c->detail);
	buf_fini(&xml);
	r->status = 204;
	return e;
}
