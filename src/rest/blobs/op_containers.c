/* SPDX-License-Identifier: MIT
 * Containers: create, delete, properties, and how rest/core/collections.h serves them. */
#include "codec/http_date.h"
#include "model/limits.h"
#include "rest/blobs/blob_request.h"
#include "rest/blobs/ops.h"
#include "rest/core/metadata_headers.h"
#include "service/blobs/containers.h"

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

static void add_properties(const struct collection *i, struct buf *out)
{
	buf_add_str(out, "<Properties><Last-Modified>");
	http_date_add(out, i->etag);
	buf_add_str(out, "</Last-Modified><Etag>");
	blob_etag_add(i->etag, out);
	buf_add_str(out,
		"</Etag><LeaseStatus>unlocked</LeaseStatus>"
		"<LeaseState>available</LeaseState>");
	if (i->access != CONTAINER_PRIVATE)
		buf_addf(out, "<PublicAccess>%s</PublicAccess>",
			i->access == CONTAINER_ALL ? "container" : "blob");
	buf_add_str(out, "</Properties>");
}

static enum err check_conditions(void *arg, const struct collection *now)
{
	return blob_conditions_write(arg, now->etag);
}

static enum err begin_change(struct request_context *c, struct collection_edit *to)
{
	struct blob_conditions *conditions = &blob_request(c)->conditions;
	enum err e = blob_request_conditions(c, conditions);
	/* Without a condition, a delete need not meet the container between two changes of its blobs. */
	if (blob_conditions_given(conditions))
		to->check = check_conditions;
	to->arg = conditions;
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
	struct collection_edit to = { 0 };
	uint64_t id;
	enum err e = begin_change(c, &to);
	if (e == ERR_OK)
		e = rest_collection_id(c, &id);
	if (e == ERR_OK)
		e = collection_delete(c->service, ORIGIN_REST, &collection_container, id, to.check,
			to.arg, &c->detail);
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
	response_header_str(r, "x-ms-lease-status", "unlocked");
	response_header_str(r, "x-ms-lease-state", "available");
	metadata_to_headers(i.metadata, r);
	collection_fini(&i);
	r->status = 200;
	return ERR_OK;
}
