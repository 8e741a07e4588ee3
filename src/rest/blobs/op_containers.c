/* SPDX-License-Identifier: MIT
 * Containers: list, create, delete, properties, metadata and stored access policies. */
#include "codec/xml.h"
#include "model/limits.h"
#include "rest/blobs/blob_request.h"
#include "rest/blobs/ops.h"
#include "rest/core/acl.h"
#include "rest/core/http_date.h"
#include "rest/core/metadata_headers.h"
#include "service/blobs/containers.h"

#define LIST_MAX 5000
#define ACCESS_HEADER "x-ms-blob-public-access"

/* ---- the list ---- */

struct list {
	struct buf *out;
	bool metadata;
};

static bool add_container(void *arg, const struct container_info *i)
{
	const struct list *l = arg;
	buf_add_str(l->out, "<Container>");
	xml_add_element(l->out, "Name", i->name);
	buf_add_str(l->out, "<Properties><Last-Modified>");
	http_date_add(l->out, i->etag);
	buf_add_str(l->out, "</Last-Modified><Etag>");
	blob_etag_add(i->etag, l->out);
	buf_add_str(l->out,
		"</Etag><LeaseStatus>unlocked</LeaseStatus>"
		"<LeaseState>available</LeaseState>");
	if (i->access != CONTAINER_PRIVATE)
		buf_addf(l->out, "<PublicAccess>%s</PublicAccess>",
			i->access == CONTAINER_ALL ? "container" : "blob");
	buf_add_str(l->out, "</Properties>");
	if (l->metadata)
		metadata_to_xml(i->metadata, l->out);
	buf_add_str(l->out, "</Container>");
	return true;
}

enum err op_list_containers(struct request_context *c, struct response *r)
{
	struct span prefix = blob_request_param(c, "prefix");
	struct span marker = blob_request_param(c, "marker");
	struct span include = blob_request_param(c, "include");
	struct list l = { &r->body, span_find(include, SPAN_LIT("metadata")) < include.n };
	struct buf next = BUF_INIT(256);
	int64_t max;
	enum err e = param_number(
		c, &blob_request(c)->range, "maxresults", 1, INT64_MAX, LIST_MAX, &max);
	if (e != ERR_OK)
		return e;
	max = max < LIST_MAX ? max : LIST_MAX;
	buf_add_str(&r->body, XML_DECLARATION "<EnumerationResults ServiceEndpoint=\"");
	xml_add_message(&r->body, c->url.base);
	buf_add_str(&r->body, "\">");
	xml_add_element(&r->body, "Prefix", prefix);
	xml_add_element(&r->body, "Marker", marker);
	buf_addf(&r->body, "<MaxResults>%lld</MaxResults><Containers>", (long long)max);
	e = container_list(
		c->service, c->secrets.id, prefix, marker, (size_t)max, add_container, &l, &next);
	buf_add_str(&r->body, "</Containers>");
	xml_add_element(&r->body, "NextMarker", buf_span(&next));
	buf_add_str(&r->body, "</EnumerationResults>");
	buf_fini(&next);
	r->status = 200;
	response_header_str(r, "Content-Type", "application/xml");
	return e;
}

enum err op_account_information(struct request_context *c, struct response *r)
{
	(void)c;
	response_header_str(r, "x-ms-sku-name", "Standard_LRS");
	response_header_str(r, "x-ms-account-kind", "StorageV2");
	r->status = 200;
	return ERR_OK;
}

/* ---- one container ---- */

static enum err read_access(struct request_context *c, enum container_access *ret)
{
	struct span s = request_header(c->request, ACCESS_HEADER);
	*ret = CONTAINER_PRIVATE;
	if (s.n == 0)
		return ERR_OK;
	*ret = span_is(s, "container") ? CONTAINER_ALL : CONTAINER_BLOBS;
	return span_is(s, "container") || span_is(s, "blob")
		? ERR_OK
		: err_set(&c->detail, ERR_HEADER_INVALID,
			  ACCESS_HEADER " is 'container' or 'blob'.");
}

enum err op_create_container(struct request_context *c, struct response *r)
{
	struct buf metadata = BUF_INIT(4 * LIMIT_METADATA_BYTES);
	enum container_access access;
	int64_t etag = 0;
	enum err e = read_access(c, &access);
	if (e == ERR_OK)
		e = metadata_from_headers(c, &metadata);
	if (e == ERR_OK)
		e = container_create(c->service, ORIGIN_REST, c->secrets.id, c->container,
			buf_span(&metadata), access, &etag, &c->detail);
	buf_fini(&metadata);
	r->status = 201;
	blob_etag_headers(etag, r);
	return e;
}

enum err op_delete_container(struct request_context *c, struct response *r)
{
	struct blob_conditions conditions;
	uint64_t id;
	enum err e = blob_request_conditions(c, &conditions);
	if (e == ERR_OK)
		e = blob_request_container(c, &id);
	if (e == ERR_OK)
		e = container_delete(c->service, ORIGIN_REST, id, &conditions, &c->detail);
	r->status = 202;
	return e;
}

static void add_access(enum container_access access, struct response *r)
{
	if (access != CONTAINER_PRIVATE)
		response_header_str(
			r, ACCESS_HEADER, access == CONTAINER_ALL ? "container" : "blob");
}

enum err op_get_container(struct request_context *c, struct response *r)
{
	struct container_info i = { 0 };
	enum err e = container_find(c->service, c->secrets.id, c->container, &i);
	if (e != ERR_OK)
		return e;
	blob_etag_headers(i.etag, r);
	response_header_str(r, "x-ms-lease-status", "unlocked");
	response_header_str(r, "x-ms-lease-state", "available");
	add_access(i.access, r);
	metadata_to_headers(i.metadata, r);
	container_info_fini(&i);
	r->status = 200;
	return ERR_OK;
}

enum err op_set_container_metadata(struct request_context *c, struct response *r)
{
	struct buf metadata = BUF_INIT(4 * LIMIT_METADATA_BYTES);
	struct blob_conditions conditions;
	uint64_t id;
	int64_t etag = 0;
	enum err e = blob_request_conditions(c, &conditions);
	if (e == ERR_OK)
		e = blob_request_container(c, &id);
	if (e == ERR_OK)
		e = metadata_from_headers(c, &metadata);
	if (e == ERR_OK)
		e = container_set_metadata(c->service, ORIGIN_REST, id, buf_span(&metadata),
			&conditions, &etag, &c->detail);
	buf_fini(&metadata);
	blob_etag_headers(etag, r);
	r->status = 200;
	return e;
}

enum err op_get_container_acl(struct request_context *c, struct response *r)
{
	struct container_info i = { 0 };
	enum err e = container_find(c->service, c->secrets.id, c->container, &i);
	if (e != ERR_OK)
		return e;
	e = acl_write(c, i.policies, r);
	blob_etag_headers(i.etag, r);
	add_access(i.access, r);
	container_info_fini(&i);
	return e;
}

enum err op_set_container_acl(struct request_context *c, struct response *r)
{
	struct buf xml = BUF_INIT(RESPONSE_BODY_LIMIT);
	struct blob_conditions conditions;
	enum container_access access;
	uint64_t id;
	int64_t etag = 0;
	enum err e = blob_request_conditions(c, &conditions);
	if (e == ERR_OK)
		e = blob_request_container(c, &id);
	if (e == ERR_OK)
		e = read_access(c, &access);
	/* Without a body there are no policies. */
	if (e == ERR_OK && c->request->body.n > 0)
		e = acl_read(c, &xml);
	if (e == ERR_OK)
		e = container_set_policies(c->service, ORIGIN_REST, id, buf_span(&xml), access,
			&conditions, &etag, &c->detail);
	buf_fini(&xml);
	blob_etag_headers(etag, r);
	r->status = 200;
	return e;
}
