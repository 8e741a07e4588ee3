/* SPDX-License-Identifier: MIT
 * One entity: get, insert, update, merge, upsert, delete (protocol sections 2.5 to 2.9). */
#include "model/key.h"
#include "rest/tables/change.h"
#include "rest/tables/ops.h"
#include "rest/tables/select.h"
#include "service/core/admission.h"

/* The usual size of a response's metadata. */
#define METADATA_USUAL 512

static enum err apply_one(struct request_context *c, struct response *r)
{
	uint64_t table;
	enum err e = context_table(c, &table);
	if (e != ERR_OK)
		return e;
	struct entity_change change;
	e = entity_change_read(c, &change);
	if (e == ERR_OK)
		e = entities_apply(c->service, ORIGIN_REST, table, &change.op, 1,
			ENTITIES_SET | ENTITIES_DURABLE, &c->detail);
	if (e == ERR_OK)
		e = entity_change_respond(c, &change, r);
	entity_change_fini(&change);
	return e;
}

enum err op_insert_entity(struct request_context *c, struct response *r)
{
	return apply_one(c, r);
}

enum err op_change_entity(struct request_context *c, struct response *r)
{
	return apply_one(c, r);
}

enum err op_get_entity(struct request_context *c, struct response *r)
{
	uint64_t table;
	struct odata_style style = context_style(c);
	const struct resource *at = &table_request(c)->resource;
	enum err e = context_table(c, &table);
	if (e == ERR_OK)
		e = key_check(at->pk, "PartitionKey", &c->detail);
	if (e == ERR_OK)
		e = key_check(at->rk, "RowKey", &c->detail);
	if (e == ERR_OK)
		e = select_read(c, &style);
	/* A row outside of the token's range does not exist. */
	if (e == ERR_OK && table_request_allows_row(table_request(c), at->pk, at->rk) != ERR_OK)
		e = ERR_NOT_FOUND;
	if (e == ERR_OK)
		e = admission_entities(c->service, table, at->pk, HEAT_READ, 1, &c->detail);
	if (e != ERR_OK)
		return e;
	struct item it = { 0 };
	e = entity_row(c->service, NULL, table, at->pk, at->rk, &it);
	if (e != ERR_OK)
		return e;
	struct odata_row row = { .pk = at->pk,
		.rk = at->rk,
		.version = it.version,
		.document = it.body,
		.canonical = (it.flags & ITEM_CANONICAL) != 0 };
	response_odata(c, r, 200, true);
	response_etag(r, it.version);
	(void)buf_reserve(&r->body, it.body.n + METADATA_USUAL);
	e = table_request(c)->format->write_entity(&style, &row, &r->body);
	item_fini(&it);
	return e;
}
