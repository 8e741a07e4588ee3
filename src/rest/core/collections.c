/* SPDX-License-Identifier: MIT */
#include "rest/core/collections.h"

#include "codec/xml.h"
#include "model/limits.h"
#include "rest/core/acl.h"
#include "rest/core/metadata_headers.h"
#include "rest/core/rest_service.h"
#include "rest/core/xml_error.h"

#define LIST_MAX 5000

enum err rest_collection_id(struct request_context *c, uint64_t *ret)
{
	return collection_id(
		c->service, c->rest->collections->type, c->secrets.id, c->container, ret);
}

enum err rest_collection_find(struct request_context *c, struct collection *ret)
{
	const struct rest_collections *how = c->rest->collections;
	enum err e = collection_find(c->service, how->type, c->secrets.id, c->container, ret);
	if (e == ERR_OK && how->check_read != NULL) {
		e = how->check_read(c, ret);
		if (e != ERR_OK)
			collection_fini(ret);
	}
	return e;
}

/* ---- the list ---- */

struct list {
	struct service *service;
	const struct rest_collections *how;
	struct buf *out;
	bool metadata;
};

static bool add_collection(void *arg, const struct collection *c)
{
	const struct list *l = arg;
	buf_addf(l->out, "<%s>", l->how->element);
	xml_add_element(l->out, "Name", c->name);
	if (l->how->add_properties != NULL)
		l->how->add_properties(l->service, c, l->out);
	if (l->metadata)
		metadata_to_xml(c->metadata, l->out);
	buf_addf(l->out, "</%s>", l->how->element);
	return true;
}

static bool is_among(struct span word, const char *const *words)
{
	while (*words != NULL && !span_is(word, *words))
		words++;
	return *words != NULL;
}

/* Reads include=a,b. */
static enum err read_include(struct request_context *c, bool *ret_metadata)
{
	struct span rest = context_param_or_empty(c, "include");
	while (rest.n > 0) {
		struct span word = span_take(&rest, ',');
		bool metadata = span_is(word, "metadata");
		*ret_metadata = *ret_metadata || metadata;
		if (!metadata && !is_among(word, c->rest->collections->includes))
			return err_set(&c->detail, ERR_QUERY_VALUE, "%s 'include' is 'metadata'.",
				err_text(ERR_QUERY_VALUE));
	}
	return ERR_OK;
}

enum err op_list_collections(struct request_context *c, struct response *r)
{
	const struct rest_collections *how = c->rest->collections;
	struct span prefix = context_param_or_empty(c, "prefix");
	struct span marker = context_param_or_empty(c, "marker");
	struct list l = { c->service, how, &r->body, false };
	struct buf next = BUF_INIT(1024);
	int64_t max;
	enum err e = read_include(c, &l.metadata);
	if (e == ERR_OK)
		e = param_number(c, "maxresults", 1, INT32_MAX, LIST_MAX, &max);
	if (e != ERR_OK)
		return e;
	max = max < LIST_MAX ? max : LIST_MAX;
	buf_add_str(&r->body, XML_DECLARATION "<EnumerationResults ServiceEndpoint=\"");
	xml_add_message(&r->body, c->url.base);
	buf_add_str(&r->body, "\">");
	xml_add_element(&r->body, "Prefix", prefix);
	xml_add_element(&r->body, "Marker", marker);
	buf_addf(&r->body, "<MaxResults>%lld</MaxResults><%ss>", (long long)max, how->element);
	e = collection_list(c->service, how->type, c->secrets.id, prefix, marker, (size_t)max,
		add_collection, &l, &next);
	buf_addf(&r->body, "</%ss>", how->element);
	xml_add_element(&r->body, "NextMarker", buf_span(&next));
	buf_add_str(&r->body, "</EnumerationResults>");
	buf_fini(&next);
	r->status = 200;
	response_header_str(r, "Content-Type", "application/xml");
	return e;
}

/* ---- one collection ---- */

/* Reads what the request says into *to, which is zeroed. */
typedef enum err (*read_fn)(struct request_context *c, struct buf *out);

static enum err change(
	struct request_context *c, read_fn read, bool is_metadata, struct response *r)
{
	const struct rest_collections *how = c->rest->collections;
	struct collection_edit to = { 0 };
	struct collection now = { 0 };
	struct buf text = BUF_INIT(RESPONSE_BODY_LIMIT);
	struct span span;
	uint64_t id;
	enum err e = how->begin_change != NULL ? how->begin_change(c, &to) : ERR_OK;
	if (e == ERR_OK)
		e = rest_collection_id(c, &id);
	if (e == ERR_OK)
		e = read(c, &text);
	span = buf_span(&text);
	*(is_metadata ? &to.metadata : &to.policies) = &span;
	if (e == ERR_OK)
		e = collection_set(
			c->service, ORIGIN_REST, how->type, id, &to, &now.etag, &c->detail);
	buf_fini(&text);
	if (e == ERR_OK && how->add_headers != NULL)
		how->add_headers(&now, r);
	r->status = how->changed_status;
	return e;
}

enum err op_set_collection_metadata(struct request_context *c, struct response *r)
{
	return change(c, metadata_from_headers, true, r);
}

enum err op_set_collection_acl(struct request_context *c, struct response *r)
{
	return change(c, acl_read, false, r);
}

enum err op_get_collection_acl(struct request_context *c, struct response *r)
{
	const struct rest_collections *how = c->rest->collections;
	struct collection now = { 0 };
	enum err e = rest_collection_find(c, &now);
	if (e != ERR_OK)
		return e;
	e = acl_write(c, now.policies, r);
	if (how->add_headers != NULL)
		how->add_headers(&now, r);
	collection_fini(&now);
	return e;
}
