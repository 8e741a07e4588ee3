/* SPDX-License-Identifier: MIT */
#include "service/change/change_set.h"

#include "base/text.h"
#include "codec/change_set_json.h"
#include "codec/multipart.h"
#include "codec/uri.h"
#include "model/etag.h"
#include "model/limits.h"
#include "service/change/entity_request.h"
#include "service/queue/messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

struct change_set_item {
	struct entity entity;
	struct entity_message message;
	size_t offset; /* of the operation in the text */
};

struct reader {
	struct change_set *set;
	const struct change_set_place *at;
	struct span pk;            /* for operations without one; p NULL: each must have one */
	struct err_detail *detail; /* never NULL */
};

/* ---- errors with their position ---- */

static enum err put_place(
	const struct change_set *set, struct err_detail *detail, enum err e, size_t offset)
{
	char text[sizeof(detail->text)];
	(void)snprintf(text, sizeof(text), "%s", err_message(e, detail));
	return err_set_at(detail, e, set->text.p, offset, "%s", text);
}

static enum err fail_at(struct reader *r, enum err e, size_t offset, const char *why)
{
	return err_set_at(r->detail, e, r->set->text.p, offset, "%s", why);
}

/* Converts an error in a part of the text, to which the detail's offset refers. */
static enum err rebase(struct reader *r, enum err e, struct span part)
{
	size_t offset = (size_t)(part.p - r->set->text.p);
	if (r->detail->has_offset)
		offset += r->detail->offset;
	return put_place(r->set, r->detail, e, offset);
}

static enum err make_room(struct change_set *set, size_t n)
{
	if (n == 0)
		return ERR_OK;
	set->ops = calloc(n, sizeof(*set->ops));
	set->items = calloc(n, sizeof(*set->items));
	if (set->ops == NULL || set->items == NULL)
		return ERR_NO_MEMORY;
	set->n = n;
	for (size_t i = 0; i < n; i++)
		set->ops[i].attrs = ATTRS_UNSET;
	return ERR_OK;
}

/* Makes the checks of every operation after it was read with result e. */
static enum err finish_op(struct reader *r, size_t i, enum err e)
{
	struct entity_op *op = &r->set->ops[i];
	size_t offset = r->set->items[i].offset;
	if (e == ERR_OK && op->message != NULL)
		return e;
	if (e == ERR_OK && r->at->pk.p != NULL && !span_eq(op->pk, r->at->pk))
		e = fail_at(r, ERR_KEY_MISMATCH, offset,
			"The PartitionKey is not that of the directory.");
	if (e == ERR_OK) {
		e = entity_op_check(op, r->detail);
		if (e != ERR_OK)
			e = put_place(r->set, r->detail, e, offset);
	}
	if (e == ERR_OK && r->pk.p == NULL)
		r->pk = op->pk;
	if (e != ERR_OK && e != ERR_NO_MEMORY) {
		r->set->blames = true;
		r->detail->op = i;
	}
	return e;
}

/* ---- JSON ---- */

static const enum entity_op_kind kinds[CHANGE_VERB_COUNT_] = {
	[CHANGE_VERB_DELETE] = ENTITY_DELETE,
	[CHANGE_VERB_INSERT] = ENTITY_INSERT,
	[CHANGE_VERB_MERGE] = ENTITY_MERGE,
	[CHANGE_VERB_PUT_MESSAGE] = ENTITY_MESSAGE,
	[CHANGE_VERB_REPLACE] = ENTITY_REPLACE,
	[CHANGE_VERB_UPSERT] = ENTITY_UPSERT,
	[CHANGE_VERB_UPSERT_MERGE] = ENTITY_UPSERT_MERGE,
};

/* Without a precondition any version matches. */
static enum err read_condition(
	struct reader *r, const struct change_set_json_op *json, struct entity_op *op)
{
	bool any;
	if (json->if_match.p == NULL)
		return ERR_OK;
	if (op->kind != ENTITY_DELETE && op->kind != ENTITY_MERGE && op->kind != ENTITY_REPLACE)
		return fail_at(r, ERR_INVALID_INPUT, json->if_match_offset,
			"if_match goes with merge, replace and delete only.");
	enum err e = etag_parse(json->if_match, &any, &op->if_match_version, r->detail);
	if (e != ERR_OK)
		return put_place(r->set, r->detail, e, json->if_match_offset);
	op->if_match = !any;
	op->if_match_text = json->if_match;
	return ERR_OK;
}

static enum err read_json_keys(struct reader *r, const struct change_set_json_op *json,
	const struct entity *entity, struct span *ret_pk)
{
	*ret_pk = entity->has_pk ? entity->pk : r->pk;
	if (ret_pk->p == NULL)
		return fail_at(r, ERR_KEY_MISSING, json->offset, "The PartitionKey is missing.");
	if (!entity->has_rk)
		return fail_at(r, ERR_KEY_MISSING, json->offset, "The RowKey is missing.");
	return ERR_OK;
}

static enum err read_json_message(
	struct reader *r, const struct change_set_json_op *json, struct entity_op *op, size_t i)
{
	struct entity_message *m = &r->set->items[i].message;
	struct change_set_json_message given;
	op->message = m; /* an error names the operation */
	enum err e = change_set_json_message(json->entity, &r->set->arena, &given, r->detail);
	if (e != ERR_OK)
		return rebase(r, e, json->entity);
	*m = (struct entity_message){ given.queue, given.text, 0, MESSAGE_TTL_DEFAULT_S };
	if (given.visibility_s != MESSAGE_JSON_UNSET)
		m->visibility_s = given.visibility_s;
	if (given.ttl_s != MESSAGE_JSON_UNSET)
		m->ttl_s = given.ttl_s;
	return read_condition(r, json, op);
}

static enum err read_json_op(struct reader *r, const struct change_set_json_op *json, size_t i)
{
	struct entity_op *op = &r->set->ops[i];
	struct change_set_item *item = &r->set->items[i];
	struct span pk;
	item->offset = json->offset;
	op->kind = kinds[json->verb];
	if (op->kind == ENTITY_MESSAGE)
		return read_json_message(r, json, op, i);
	enum err e =
		entity_json_decode(json->entity, ENTITY_JSON_FILE, &item->entity, NULL, r->detail);
	if (e != ERR_OK)
		return rebase(r, e, json->entity);
	e = read_json_keys(r, json, &item->entity, &pk);
	if (e != ERR_OK)
		return e;
	op->pk = pk;
	op->rk = item->entity.rk;
	if (op->kind == ENTITY_DELETE && item->entity.nprops > 0)
		return fail_at(r, ERR_INVALID_INPUT, json->offset,
			"A delete takes PartitionKey and RowKey, and no other property.");
	if (op->kind != ENTITY_DELETE)
		op->entity = &item->entity;
	return read_condition(r, json, op);
}

static enum err read_json(struct reader *r)
{
	struct change_set *set = r->set;
	struct change_set_json json;
	enum err e =
		change_set_json_parse(set->text, LIMIT_BATCH_OPS, &set->arena, &json, r->detail);
	set->blames = e == ERR_INVALID_INPUT;
	if (e == ERR_OK)
		e = make_room(set, json.n);
	for (size_t i = 0; e == ERR_OK && i < set->n; i++)
		e = finish_op(r, i, read_json_op(r, &json.ops[i], i));
	return e;
}

/* ---- $batch bodies ---- */

static struct span header(const struct batch_part *part, const char *name)
{
	const struct span *value = mime_header_find(part->headers, part->nheaders, name);
	return value != NULL ? *value : (struct span){ 0 };
}

static size_t header_count(const struct batch_part *part, const char *name)
{
	size_t count = 0;
	for (size_t i = 0; i < part->nheaders; i++)
		count += part->headers[i].name.n == strlen(name) &&
			strncasecmp(part->headers[i].name.p, name, part->headers[i].name.n) == 0;
	return count;
}

/* Removes the account's segment, which old clients repeat.  The last segment always is a table. */
static struct span strip_account(struct span path, struct span account)
{
	for (int i = 0; i < 2; i++) {
		struct span rest = path;
		if (rest.n > 0 && rest.p[0] == '/')
			rest = span_make(rest.p + 1, rest.n - 1);
		if (!span_starts(rest, account) || rest.n < account.n + 2 ||
			rest.p[account.n] != '/')
			break;
		path = span_make(rest.p + account.n, rest.n - account.n);
	}
	return path;
}

static enum err read_target(
	struct reader *r, const struct batch_part *part, struct resource *ret, size_t offset)
{
	struct url_parts url;
	url_split(part->target, &url);
	enum err e = resource_parse(
		strip_account(url.path, r->at->account), &r->set->arena, ret, r->detail);
	if (e != ERR_OK)
		return put_place(r->set, r->detail, e, offset);
	if ((ret->kind == RESOURCE_ENTITIES || ret->kind == RESOURCE_ENTITY) &&
		(ret->table.n != r->at->table.n ||
			strncasecmp(ret->table.p, r->at->table.p, ret->table.n) != 0))
		return fail_at(r, ERR_INVALID_INPUT, offset,
			"The operation names another table than this one.");
	return ERR_OK;
}

static enum err read_body(struct reader *r, const struct batch_part *part, struct entity *ret)
{
	enum err e = entity_json_decode(part->body, ENTITY_JSON_REST, ret, NULL, r->detail);
	if (e == ERR_EMPTY)
		return fail_at(r, ERR_VALUE_INVALID, (size_t)(part->method.p - r->set->text.p),
			"The body of the operation is empty.");
	/* The set is complete, so the entity is invalid. */
	return e == ERR_OK ? e : rebase(r, e == ERR_INCOMPLETE ? ERR_VALUE_INVALID : e, part->body);
}

static enum err read_insert(struct reader *r, const struct batch_part *part, size_t i)
{
	struct entity_op *op = &r->set->ops[i];
	struct entity *entity = &r->set->items[i].entity;
	enum err e = read_body(r, part, entity);
	if (e == ERR_OK && (!entity->has_rk || (!entity->has_pk && r->pk.p == NULL)))
		e = fail_at(r, ERR_KEY_MISSING, r->set->items[i].offset, err_text(ERR_KEY_MISSING));
	if (e != ERR_OK)
		return e;
	op->kind = ENTITY_INSERT;
	op->pk = entity->has_pk ? entity->pk : r->pk;
	op->rk = entity->rk;
	op->entity = entity;
	return ERR_OK;
}

static enum err read_update(struct reader *r, const struct batch_part *part, size_t i,
	struct span method, const struct resource *at)
{
	struct entity_op *op = &r->set->ops[i];
	struct entity *entity = &r->set->items[i].entity;
	size_t offset = r->set->items[i].offset;
	const struct entity_request request = { .method = method,
		.if_match = header(part, "If-Match"),
		.if_match_count = header_count(part, "If-Match"),
		.if_none_match = header(part, "If-None-Match").p != NULL };
	op->pk = at->pk;
	op->rk = at->rk;
	op->if_match_text = request.if_match;
	enum err e = entity_request_read(&request, op, r->detail);
	if (e != ERR_OK)
		return put_place(r->set, r->detail, e, offset);
	if (op->kind == ENTITY_DELETE)
		return ERR_OK;
	e = read_body(r, part, entity);
	if (e != ERR_OK)
		return e;
	op->entity = entity;
	e = entity_request_check_keys(op, entity, r->detail);
	return e == ERR_OK ? e : put_place(r->set, r->detail, e, offset);
}

static bool is_update(struct span method)
{
	return span_is(method, "PUT") || span_is(method, "MERGE") || span_is(method, "PATCH") ||
		span_is(method, "DELETE");
}

static enum err read_part(struct reader *r, const struct batch_part *part, size_t i)
{
	struct resource at = { 0 };
	struct span method;
	size_t offset = (size_t)(part->method.p - r->set->text.p);
	r->set->items[i].offset = offset;
	if (!part->in_change_set)
		return fail_at(r, ERR_INVALID_INPUT, offset,
			"Outside of a change set a batch holds a query: those are answered by "
			".query.");
	if (part->change_set > 0)
		return fail_at(
			r, ERR_INVALID_INPUT, offset, "A batch can contain only one change set.");
	enum err e = entity_request_method(part->method, header(part, "X-HTTP-Method"),
		header_count(part, "X-HTTP-Method"), &method);
	if (e != ERR_OK)
		return put_place(r->set, r->detail, e, offset);
	e = read_target(r, part, &at, offset);
	if (e != ERR_OK)
		return e;
	if (at.kind == RESOURCE_ENTITIES && span_is(method, "POST"))
		return read_insert(r, part, i);
	if (at.kind == RESOURCE_ENTITY && is_update(method))
		return read_update(r, part, i, method, &at);
	return fail_at(r, ERR_INVALID_INPUT, offset,
		"A change set can contain only operations that change one entity.");
}

/* The first line is "--" and the boundary.  Returns the Content-Type that it implies; p is NULL if
 * it is another line, or incomplete. */
static struct span content_type(struct reader *r, struct span text, enum err *ret_error)
{
	const char *end = memchr(text.p, '\n', text.n);
	*ret_error = ERR_INCOMPLETE;
	if (end == NULL)
		return (struct span){ 0 };
	struct span boundary = text_trim(span_make(text.p, (size_t)(end - text.p)), " \t\r");
	size_t offset = (size_t)(text.p - r->set->text.p);
	if (boundary.n < 3 || memchr(boundary.p, '"', boundary.n) != NULL) {
		*ret_error = fail_at(
			r, ERR_INVALID_INPUT, offset, "The first line is not a MIME boundary.");
		return (struct span){ 0 };
	}
	static const char before[] = "multipart/mixed; boundary=\"";
	size_t n = sizeof(before) - 1, m = boundary.n - 2;
	char *type = arena_alloc(&r->set->arena, n + m + 1);
	*ret_error = type == NULL ? ERR_NO_MEMORY : ERR_OK;
	if (type == NULL)
		return (struct span){ 0 };
	memcpy(type, before, n);
	memcpy(type + n, boundary.p + 2, m);
	type[n + m] = '"';
	return span_make(type, n + m + 1);
}

/* text begins at the first delimiter. */
static enum err read_batch(struct reader *r, struct span text)
{
	struct change_set *set = r->set;
	struct batch_body body;
	enum err e;
	struct span type = content_type(r, text, &e);
	if (e == ERR_OK && !batch_body_is_closed(type, text))
		e = ERR_INCOMPLETE;
	if (e == ERR_INCOMPLETE)
		return fail_at(r, e, set->text.n,
			"The change set is not complete: the closing delimiter of the batch is "
			"missing.");
	if (e != ERR_OK)
		return e;
	/* Parses from the start of the text, so that positions are correct. */
	e = batch_body_parse(type, set->text, LIMIT_BATCH_OPS, &set->arena, &body, r->detail);
	if (e == ERR_OK)
		e = make_room(set, body.nparts);
	for (size_t i = 0; e == ERR_OK && i < set->n; i++)
		e = finish_op(r, i, read_part(r, &body.parts[i], i));
	return e;
}

/* ---- the whole ---- */

enum err change_set_parse(struct span text, const struct change_set_place *at,
	struct change_set *ret, struct err_detail *detail)
{
	struct reader r = { .set = ret, .at = at, .detail = detail };
	*ret = (struct change_set){ .text = text };
	if (at->pk.p != NULL) {
		r.pk = arena_copy(&ret->arena, at->pk);
		if (r.pk.p == NULL)
			return ERR_NO_MEMORY;
	}
	struct span rest = text;
	while (rest.n > 0 && memchr(" \t\r\n", rest.p[0], 4) != NULL)
		rest = span_make(rest.p + 1, rest.n - 1);
	bool batch =
		rest.n > 0 && span_starts(SPAN_LIT("--"), span_make(rest.p, rest.n < 2 ? 1 : 2));
	enum err e = batch ? read_batch(&r, rest) : read_json(&r);
	if (e == ERR_OK && ret->n == 0)
		e = err_set(detail, ERR_INVALID_INPUT, "The change set holds no operation.");
	return e;
}

void change_set_fini(struct change_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		entity_fini(&set->items[i].entity);
	free(set->items);
	free(set->ops);
	arena_fini(&set->arena);
	*set = (struct change_set){ 0 };
}

enum err change_set_blame(struct change_set *set, enum err e, struct err_detail *detail)
{
	set->blames = true;
	return put_place(set, detail, e, set->items[detail->op].offset);
}

enum err change_set_apply(struct service *s, enum origin origin, uint64_t table_id,
	struct change_set *set, unsigned flags, struct err_detail *detail)
{
	*detail = (struct err_detail){ 0 };
	enum err e =
		entities_apply(s, origin, table_id, set->ops, set->n, flags | ENTITIES_SET, detail);
	/* Errors of the store blame no operation. */
	bool blames = e != ERR_OK && e != ERR_TABLE_NOT_FOUND && e != ERR_GONE &&
		(err_http(e) < 500 || e == ERR_NOT_SUPPORTED || e == ERR_CROSS_DEVICE);
	return blames ? change_set_blame(set, e, detail) : e;
}
