/* SPDX-License-Identifier: MIT
 * Containers: create, delete, properties, and how rest/core/collections.h serves them. */
#include "codec/http_date.h"
#include "model/limits.h"
#include "rest/blobs/blob_request.h"
#include "rest/blobs/lease_headers.h"
#include "rest/blobs/ops.h"
#include "rest/core/metadata_headers.h"
#include "service/blobs/containers.h"
#include "service/blobs/leases.h"

#define ACCESS_HEADER "x-ms-blob-public-access"

enum err op_account_information(struct request_context *c, struct response *r)
{
	(void)c;
	response_header_str(r, "x-ms-sku-name", "Standard_LRS");
	response_header_str(r, "x-ms-account-kind", "StorageV2");
	r->status = 200;
	return ERR_OK;
}

static enum err read_access(struct request_context *c, int *ret)
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

static void add_headers(const struct collection *i, struct response *r)
{
	blob_etag_headers(i->etag, r);
	if (i->access != CONTAINER_PRIVATE)
		response_header_str(
			r, ACCESS_HEADER, i->access == CONTAINER_ALL ? "container" : "blob");
}

static void add_properties(struct service *s, const struct collection *i, struct buf *out)
{
	buf_add_str(out, "<Properties><Last-Modified>");
	http_date_add(out, i->etag);
	buf_add_str(out, "</Last-Modified><Etag>");
	blob_etag_add(i->etag, out);
	buf_add_str(out, "</Etag>");
	lease_xml_add(&i->lease, service_now(s), out);
	if (i->access != CONTAINER_PRIVATE)
		buf_addf(out, "<PublicAccess>%s</PublicAccess>",
			i->access == CONTAINER_ALL ? "container" : "blob");
	buf_add_str(out, "</Properties>");
}

static enum err check_use(void *arg, const struct collection *now)
{
	const struct request_context *c = arg;
	return container_check_use(c->service, now, &blob_request(c)->conditions);
}

static enum err check_delete(void *arg, const struct collection *now)
{
	const struct request_context *c = arg;
	return container_check_delete(c->service, now, &blob_request(c)->conditions);
}

/* Get Container Properties, Metadata and ACL know no other condition. */
static enum err check_read(struct request_context *c, const struct collection *now)
{
	struct blob_conditions lease = { 0 };
	enum err e = lease_id_read(c, "x-ms-lease-id", &lease.lease);
	return e == ERR_OK ? container_check_use(c->service, now, &lease) : e;
}

static enum err begin_change(struct request_context *c, struct collection_edit *to)
{
	enum err e = blob_request_conditions(c, &blob_request(c)->conditions);
	to->check = check_use;
	to->arg = c;
	return e == ERR_OK ? read_access(c, &to->access) : e;
}

static const char *const includes[] = { "deleted", "system", NULL };

const struct rest_collections container_collections = {
	.type = &collection_container,
	.element = "Container",
	.includes = includes,
	.changed_status = 200,
	.add_properties = add_properties,
	.add_headers = add_headers,
	.check_read = check_read,
	.begin_change = begin_change,
};

enum err op_create_container(struct request_context *c, struct response *r)
{
	struct buf metadata = BUF_INIT(4 * LIMIT_METADATA_BYTES);
	struct collection to = { .policies = SPAN_LIT("") };
	enum err e = read_access(c, &to.access);
	if (e == ERR_OK)
		e = metadata_from_headers(c, &metadata);
	to.name = c->container;
	to.metadata = buf_span(&metadata);
	if (e == ERR_OK)
		e = collection_create(c->service, ORIGIN_REST, &collection_container, c->secrets.id,
			&to, &c->detail);
	buf_fini(&metadata);
	r->status = 201;
	blob_etag_headers(to.etag, r);
	return e;
}

enum err op_delete_container(struct request_context *c, struct response *r)
{
	uint64_t id;
	enum err e = blob_request_begin(c, &blob_request(c)->conditions, &id);
	if (e == ERR_OK)
		e = collection_delete(c->service, ORIGIN_REST, &collection_container, id,
			check_delete, c, false, &c->detail);
	r->status = 202;
	return e;
}

enum err op_get_container(struct request_context *c, struct response *r)
{
	struct collection i = { 0 };
	enum err e = rest_collection_find(c, &i);
	if (e != ERR_OK)
		return e;
	add_headers(&i, r);
	lease_headers_add(c, &i.lease, r);
	metadata_to_headers(i.metadata, r);
	collection_fini(&i);
	r->status = 200;
	return ERR_OK;
}
