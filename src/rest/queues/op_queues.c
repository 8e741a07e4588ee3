/* SPDX-License-Identifier: MIT
 * Queues: list, create, delete, metadata and stored access policies. */
#include "codec/xml.h"
#include "rest/core/acl.h"
#include "rest/core/metadata_headers.h"
#include "rest/queues/ops.h"
#include "service/queue/queues.h"

#include <stdio.h>

#define LIST_MAX 5000

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
		metadata_to_xml(q->metadata, l->out);
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
	enum err e = metadata_from_headers(c, &metadata);
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
	metadata_to_headers(q.metadata, r);
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
		e = metadata_from_headers(c, &metadata);
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
