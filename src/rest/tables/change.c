/* SPDX-License-Identifier: MIT */
#include "rest/tables/change.h"

#include "model/etag.h"
#include "model/versions.h"
#include "service/change/entity_request.h"

#include <strings.h>

#define URL_LIMIT ((size_t)64 << 10)

/* Searches a list of tokens, ignoring case (RFC 7240). */
static bool prefers(const struct request_context *c, const char *token)
{
	struct span list = request_header(c->request, "Prefer");
	size_t n = strlen(token);
	if (!version_has(c->version, VERSION_PREFER))
		return false;
	for (size_t i = 0; i + n <= list.n; i++) {
		bool begins = i == 0 || list.p[i - 1] == ',' || list.p[i - 1] == ' ';
		bool ends = i + n == list.n || strchr(", ;", list.p[i + n]) != NULL;
		if (begins && ends && strncasecmp(list.p + i, token, n) == 0)
			return true;
	}
	return false;
}

bool context_wants_no_content(const struct request_context *c)
{
	return prefers(c, "return-no-content");
}

const char *context_preference(const struct request_context *c)
{
	if (context_wants_no_content(c))
		return "return-no-content";
	return prefers(c, "return-content") ? "return-content" : NULL;
}

struct odata_style context_style(const struct request_context *c)
{
	return (struct odata_style){ .level = table_request(c)->level,
		.single = true,
		.base = c->url.base,
		.account = span_of(c->url.account),
		.table = c->container,
		.all = true };
}

void response_etag(struct response *r, int64_t version)
{
	char etag[ETAG_MAX];
	etag_format(version, etag);
	response_header_str(r, "ETag", etag);
}

void response_odata(const struct request_context *c, struct response *r, int status, bool body)
{
	r->status = status;
	response_header_str(r, "Cache-Control", "no-cache");
	response_header_str(r, "X-Content-Type-Options", "nosniff");
	if (body)
		response_header_str(r, "Content-Type",
			table_request(c)->format->content_type(
				table_request(c)->level, BODY_ELEMENTS));
}

static enum err read_body(struct request_context *c, struct entity_change *change)
{
	enum err e = format_of_body(request_header(c->request, "Content-Type"), c->version,
		&table_request(c)->body_format, &c->detail);
	if (e == ERR_OK)
		e = table_request(c)->body_format->read_entity(
			c->request->body, &change->entity, &c->detail);
	return e;
}

static enum err read_insert(struct request_context *c, struct entity_change *change)
{
	enum err e = read_body(c, change);
	if (e != ERR_OK)
		return e;
	if (!change->entity.has_pk || !change->entity.has_rk)
		return err_set(&c->detail, ERR_KEY_MISSING, "%s", err_text(ERR_KEY_MISSING));
	change->op.kind = ENTITY_INSERT;
	change->op.pk = change->entity.pk;
	change->op.rk = change->entity.rk;
	change->no_content = context_wants_no_content(c);
	return ERR_OK;
}

static enum err read_update(struct request_context *c, struct entity_change *change)
{
	const struct entity_request r = { .method = c->method,
		.if_match = request_header(c->request, "If-Match"),
		.if_match_count = request_header_count(c->request, "If-Match"),
		.if_none_match = request_header(c->request, "If-None-Match").p != NULL };
	change->op.pk = table_request(c)->resource.pk;
	change->op.rk = table_request(c)->resource.rk;
	enum err e = entity_request_read(&r, &change->op, &c->detail);
	if (e != ERR_OK || change->op.kind == ENTITY_DELETE)
		return e;
	e = read_body(c, change);
	return e == ERR_OK ? entity_request_check_keys(&change->op, &change->entity, &c->detail)
			   : e;
}

enum err entity_change_read(struct request_context *c, struct entity_change *ret)
{
	*ret = (struct entity_change){ .op = { .attrs = ATTRS_UNSET } };
	bool insert = c->kind == RESOURCE_ENTITIES;
	enum err e = insert ? read_insert(c, ret) : read_update(c, ret);
	if (e != ERR_OK)
		return e;
	ret->op.entity = &ret->entity;
	e = entity_op_check(&ret->op, &c->detail);
	return e == ERR_OK ? table_request_allows_row(table_request(c), ret->op.pk, ret->op.rk) : e;
}

void entity_change_fini(struct entity_change *change)
{
	entity_fini(&change->entity);
}

static enum err answer_insert(
	const struct request_context *c, const struct entity_change *change, struct response *r)
{
	response_odata(c, r, change->no_content ? 204 : 201, !change->no_content);
	const char *preference = context_preference(c);
	if (preference != NULL)
		response_header_str(r, "Preference-Applied", preference);
	struct buf url = BUF_INIT(URL_LIMIT);
	entity_odata_url(c->url.base, c->container, change->op.pk, change->op.rk, &url);
	response_header(r, "Location", buf_span(&url));
	if (change->no_content)
		response_header(r, "DataServiceId", buf_span(&url));
	bool ok = buf_ok(&url);
	buf_fini(&url);
	response_etag(r, change->op.version);
	if (!ok)
		return ERR_NO_MEMORY;
	if (change->no_content)
		return ERR_OK;
	struct odata_style style = context_style(c);
	struct odata_row row = { .pk = change->op.pk,
		.rk = change->op.rk,
		.version = change->op.version,
		.entity = &change->entity };
	return table_request(c)->format->write_entity(&style, &row, &r->body);
}

enum err entity_change_respond(
	const struct request_context *c, const struct entity_change *change, struct response *r)
{
	if (change->op.kind == ENTITY_INSERT)
		return answer_insert(c, change, r);
	response_odata(c, r, 204, false);
	if (change->op.kind != ENTITY_DELETE)
		response_etag(r, change->op.version);
	return ERR_OK;
}
