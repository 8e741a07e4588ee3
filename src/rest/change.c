/* SPDX-License-Identifier: MIT
 * Whether a PUT or MERGE is an update or an upsert is decided by If-Match alone (protocol
 * sections 2.7, 2.8). */
#include "rest/change.h"

#include "model/etag.h"
#include "model/key.h"

#include <strings.h>

#define VERSION_PREFER 20130815
#define URL_LIMIT ((size_t)64 << 10)

/* A list of tokens without case (RFC 7240). */
static bool prefers(const struct call *c, const char *token)
{
	struct span list = request_header(c->request, "Prefer");
	size_t n = strlen(token);
	if (c->version < VERSION_PREFER)
		return false;
	for (size_t i = 0; i + n <= list.n; i++) {
		bool begins = i == 0 || list.p[i - 1] == ',' || list.p[i - 1] == ' ';
		bool ends = i + n == list.n || strchr(", ;", list.p[i + n]) != NULL;
		if (begins && ends && strncasecmp(list.p + i, token, n) == 0)
			return true;
	}
	return false;
}

bool call_wants_no_content(const struct call *c)
{
	return prefers(c, "return-no-content");
}

const char *call_preference(const struct call *c)
{
	if (call_wants_no_content(c))
		return "return-no-content";
	return prefers(c, "return-content") ? "return-content" : NULL;
}

struct odata_style call_style(const struct call *c)
{
	return (struct odata_style){ .level = c->level,
		.single = true,
		.base = c->target.base,
		.account = span_of(c->target.account),
		.table = c->target.resource.table,
		.all = true };
}

void response_etag(struct response *r, int64_t version)
{
	char etag[ETAG_MAX];
	etag_format(version, etag);
	response_header_str(r, "ETag", etag);
}

void response_odata(const struct call *c, struct response *r, int status, bool body)
{
	r->status = status;
	response_header_str(r, "Cache-Control", "no-cache");
	response_header_str(r, "X-Content-Type-Options", "nosniff");
	if (body)
		response_header_str(r, "Content-Type", c->format->content_type(c->level));
}

/* The condition of the request; *ret_any: any version will do. */
static enum err read_condition(struct call *c, struct entity_op *op, bool *ret_given, bool *ret_any)
{
	if (request_header(c->request, "If-None-Match").p != NULL)
		return err_set(&c->detail, ERR_INVALID_INPUT,
			"If-None-Match HTTP header cannot be specified for %s operations.",
			span_is(c->method, "DELETE") ? "DELETE" : "PUT");
	struct span given = request_header(c->request, "If-Match");
	*ret_given = given.p != NULL;
	if (given.p == NULL)
		return ERR_OK;
	if (request_header_count(c->request, "If-Match") > 1) /* in a part of a batch */
		return err_set(&c->detail, ERR_INVALID_INPUT,
			"More than one If-Match is specified. Please make sure only one etag "
			"value is specified and is valid.");
	enum err e = etag_parse(given, ret_any, &op->if_match_version, &c->detail);
	op->if_match = e == ERR_OK && !*ret_any;
	return e;
}

static enum err choose_kind(struct call *c, struct entity_op *op, bool given)
{
	if (span_is(c->method, "DELETE")) {
		op->kind = ENTITY_DELETE;
		return given ? ERR_OK
			     : err_set(&c->detail, ERR_HEADER_MISSING,
				       "A required HTTP header was not specified: If-Match.");
	}
	if (span_is(c->method, "PUT"))
		op->kind = given ? ENTITY_REPLACE : ENTITY_UPSERT;
	else
		op->kind = given ? ENTITY_MERGE : ENTITY_UPSERT_MERGE;
	return ERR_OK;
}

static enum err read_body(struct call *c, struct entity_change *change)
{
	enum err e = format_of_body(request_header(c->request, "Content-Type"), c->version,
		&c->body_format, &c->detail);
	if (e == ERR_OK)
		e = c->body_format->read_entity(c->request->body, &change->entity, &c->detail);
	return e;
}

/* Keys in the body of an update may only repeat those of the URL. */
static enum err check_body_keys(struct call *c, const struct entity *e)
{
	const struct resource *at = &c->target.resource;
	if (e->has_pk && !span_eq(e->pk, at->pk))
		return err_set(&c->detail, ERR_INVALID_INPUT,
			"%s The PartitionKey in the body is not the PartitionKey of the URL.",
			err_text(ERR_INVALID_INPUT));
	if (e->has_rk && !span_eq(e->rk, at->rk))
		return err_set(&c->detail, ERR_INVALID_INPUT,
			"%s The RowKey in the body is not the RowKey of the URL.",
			err_text(ERR_INVALID_INPUT));
	return ERR_OK;
}

static enum err read_insert(struct call *c, struct entity_change *change)
{
	enum err e = read_body(c, change);
	if (e != ERR_OK)
		return e;
	if (!change->entity.has_pk || !change->entity.has_rk)
		return err_set(&c->detail, ERR_KEY_MISSING, "%s", err_text(ERR_KEY_MISSING));
	change->op.kind = ENTITY_INSERT;
	change->op.pk = change->entity.pk;
	change->op.rk = change->entity.rk;
	change->no_content = call_wants_no_content(c);
	return ERR_OK;
}

static enum err read_update(struct call *c, struct entity_change *change)
{
	bool given = false, any = false;
	change->op.pk = c->target.resource.pk;
	change->op.rk = c->target.resource.rk;
	enum err e = read_condition(c, &change->op, &given, &any);
	if (e == ERR_OK)
		e = choose_kind(c, &change->op, given);
	if (e != ERR_OK || change->op.kind == ENTITY_DELETE)
		return e;
	e = read_body(c, change);
	return e == ERR_OK ? check_body_keys(c, &change->entity) : e;
}

enum err entity_change_read(struct call *c, struct entity_change *ret)
{
	*ret = (struct entity_change){ .op = { .attrs = ATTRS_UNSET } };
	bool insert = c->target.resource.kind == RESOURCE_ENTITIES;
	enum err e = insert ? read_insert(c, ret) : read_update(c, ret);
	if (e != ERR_OK)
		return e;
	ret->op.entity = &ret->entity;
	/* The formula counts the keys, which the body may not hold.  All else was checked as it
	 * was read. */
	struct entity keyed = ret->entity;
	keyed.pk = ret->op.pk;
	keyed.rk = ret->op.rk;
	keyed.has_pk = keyed.has_rk = true;
	e = key_check(keyed.pk, "PartitionKey", &c->detail);
	if (e == ERR_OK)
		e = key_check(keyed.rk, "RowKey", &c->detail);
	if (e == ERR_OK && entity_size(&keyed) > LIMIT_ENTITY_BYTES)
		e = ERR_ENTITY_TOO_LARGE;
	return e == ERR_OK ? access_allows_row(&c->access, ret->op.pk, ret->op.rk) : e;
}

void entity_change_fini(struct entity_change *change)
{
	entity_fini(&change->entity);
}

static enum err answer_insert(
	const struct call *c, const struct entity_change *change, struct response *r)
{
	response_odata(c, r, change->no_content ? 204 : 201, !change->no_content);
	const char *preference = call_preference(c);
	if (preference != NULL)
		response_header_str(r, "Preference-Applied", preference);
	struct buf url = BUF_INIT(URL_LIMIT);
	entity_odata_url(
		c->target.base, c->target.resource.table, change->op.pk, change->op.rk, &url);
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
	struct odata_style style = call_style(c);
	struct odata_row row = { .pk = change->op.pk,
		.rk = change->op.rk,
		.version = change->op.version,
		.entity = &change->entity };
	return c->format->write_entity(&style, &row, &r->body);
}

enum err entity_change_answer(
	const struct call *c, const struct entity_change *change, struct response *r)
{
	if (change->op.kind == ENTITY_INSERT)
		return answer_insert(c, change, r);
	response_odata(c, r, 204, false);
	if (change->op.kind != ENTITY_DELETE)
		response_etag(r, change->op.version);
	return ERR_OK;
}
