/* SPDX-License-Identifier: MIT */
#include "service/change/entity_request.h"

#include "base/compiler.h"
#include "model/etag.h"
#include "model/key.h"
#include "model/limits.h"

enum err entity_request_method(
	struct span method, struct span tunnelled, size_t count, struct span *ret)
{
	static const char *const known[] = { "MERGE", "PATCH", "PUT", "DELETE" };
	*ret = method;
	if (tunnelled.p == NULL)
		return ERR_OK;
	if (count > 1)
		return ERR_XMETHOD_COUNT;
	if (!span_is(method, "POST"))
		return ERR_XMETHOD_VERB;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (span_is(tunnelled, known[i])) {
			*ret = tunnelled;
			return ERR_OK;
		}
	return ERR_XMETHOD_VALUE;
}

static enum err read_condition(
	const struct entity_request *r, struct entity_op *op, struct err_detail *detail)
{
	bool any = false;
	if (r->if_none_match)
		return err_set(detail, ERR_INVALID_INPUT,
			"If-None-Match HTTP header cannot be specified for %s operations.",
			span_is(r->method, "DELETE") ? "DELETE" : "PUT");
	if (r->if_match.p == NULL)
		return ERR_OK;
	if (r->if_match_count > 1) /* only possible in a part of a batch */
		return err_set(detail, ERR_INVALID_INPUT,
			"More than one If-Match is specified. Please make sure only one etag "
			"value is specified and is valid.");
	enum err e = etag_parse(r->if_match, &any, &op->if_match_version, detail);
	op->if_match = e == ERR_OK && !any;
	return e;
}

enum err entity_request_read(
	const struct entity_request *r, struct entity_op *op, struct err_detail *detail)
{
	bool given = r->if_match.p != NULL;
	enum err e = read_condition(r, op, detail);
	if (e != ERR_OK)
		return e;
	if (span_is(r->method, "DELETE")) {
		op->kind = ENTITY_DELETE;
		return given ? ERR_OK
			     : err_set(detail, ERR_HEADER_MISSING,
				       "A required HTTP header was not specified: If-Match.");
	}
	if (span_is(r->method, "PUT"))
		op->kind = given ? ENTITY_REPLACE : ENTITY_UPSERT;
	else
		op->kind = given ? ENTITY_MERGE : ENTITY_UPSERT_MERGE;
	return ERR_OK;
}

enum err entity_request_check_keys(
	const struct entity_op *op, const struct entity *body, struct err_detail *detail)
{
	if (body->has_pk && !span_eq(body->pk, op->pk))
		return err_set(detail, ERR_INVALID_INPUT,
			"%s The PartitionKey in the body is not the PartitionKey of the URL.",
			err_text(ERR_INVALID_INPUT));
	if (body->has_rk && !span_eq(body->rk, op->rk))
		return err_set(detail, ERR_INVALID_INPUT,
			"%s The RowKey in the body is not the RowKey of the URL.",
			err_text(ERR_INVALID_INPUT));
	return ERR_OK;
}

enum err entity_op_check(const struct entity_op *op, struct err_detail *detail)
{
	enum err e = key_check(op->pk, "PartitionKey", detail);
	if (e == ERR_OK)
		e = key_check(op->rk, "RowKey", detail);
	if (e != ERR_OK || op->entity == NULL)
		return e;
	struct entity keyed = *op->entity;
	keyed.pk = op->pk;
	keyed.rk = op->rk;
	keyed.has_pk = keyed.has_rk = true;
	return entity_size(&keyed) > LIMIT_ENTITY_BYTES ? ERR_ENTITY_TOO_LARGE : ERR_OK;
}
