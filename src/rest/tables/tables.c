/* SPDX-License-Identifier: MIT
 * The description of the Table service.  Its routes are protocol section 2.0, with the SAS
 * permissions of sections 4.5 and 4.6.  PUT and MERGE without If-Match are upserts, so each has two
 * rows. */
#include "rest/tables/tables.h"

#include "base/compiler.h"
#include "rest/core/properties.h"
#include "rest/tables/error_body.h"
#include "rest/tables/operations.h"
#include "rest/tables/ops.h"
#include "rest/tables/request_cost.h"
#include "rest/tables/shared_key.h"
#include "rest/tables/table_request.h"

#define P(letter_) PERMISSION(letter_)

/* clang-format off */
static const struct route routes[] = {
	{ RESOURCE_SERVICE, NULL, NULL, "GET", ROUTE_ANY, VERSION_KNOWN, ROUTE_ODATA,
		{ P('s') | P('c'), P('l') | P('r'), 0, 0 }, REST_GET_SERVICE, op_get_service },
	{ RESOURCE_SERVICE, "service", "properties", "GET", ROUTE_ANY, VERSION_PROPERTIES, ROUTE_XML,
		{ P('s'), P('r'), 0, 0 }, REST_GET_PROPERTIES, op_get_properties },
	{ RESOURCE_SERVICE, "service", "properties", "PUT", ROUTE_ANY, VERSION_PROPERTIES, ROUTE_XML,
		{ P('s'), P('w'), 0, 0 }, REST_SET_PROPERTIES, op_set_properties },
	{ RESOURCE_SERVICE, "service", "stats", "GET", ROUTE_ANY, VERSION_STATS, ROUTE_XML,
		{ P('s'), P('r'), 0, 0 }, REST_GET_STATS, op_get_stats },

	{ RESOURCE_TABLES, NULL, NULL, "GET", ROUTE_ANY, VERSION_KNOWN, ROUTE_ODATA,
		{ P('s') | P('c'), P('l'), 0, 0 }, REST_QUERY_TABLES, op_query_tables },
	{ RESOURCE_TABLES, NULL, NULL, "POST", ROUTE_ANY, VERSION_KNOWN, ROUTE_ODATA,
		{ P('c'), P('c') | P('w'), 0, 0 }, REST_CREATE_TABLE, op_create_table },
	{ RESOURCE_TABLE, NULL, NULL, "GET", ROUTE_ANY, VERSION_KNOWN, ROUTE_ODATA,
		{ P('s') | P('c'), P('l'), 0, 0 }, REST_QUERY_TABLE, op_get_table },
	{ RESOURCE_TABLE, NULL, NULL, "DELETE", ROUTE_ANY, VERSION_KNOWN, ROUTE_EMPTY,
		{ P('c'), P('d'), 0, 0 }, REST_DELETE_TABLE, op_delete_table },

	{ RESOURCE_ENTITIES, NULL, NULL, "GET", ROUTE_ANY, VERSION_KNOWN, ROUTE_ODATA,
		{ P('o'), P('r'), 0, P('r') }, REST_QUERY_ENTITIES, op_query_entities },
	{ RESOURCE_ENTITIES, NULL, NULL, "POST", ROUTE_ANY, VERSION_KNOWN, ROUTE_ODATA,
		{ P('o'), P('a'), 0, P('a') }, REST_INSERT_ENTITY, op_insert_entity },
	{ RESOURCE_ENTITIES, NULL, "acl", "GET", ROUTE_ANY, VERSION_ACL, ROUTE_XML,
		{ 0, 0, 0, 0 }, REST_GET_ACL, op_get_acl },
	{ RESOURCE_ENTITIES, NULL, "acl", "PUT", ROUTE_ANY, VERSION_ACL, ROUTE_XML,
		{ 0, 0, 0, 0 }, REST_SET_ACL, op_set_acl },
	{ RESOURCE_ENTITIES, NULL, "changes", "GET", ROUTE_ANY, VERSION_KNOWN, ROUTE_EMPTY,
		{ P('o'), P('r'), 0, P('r') }, REST_QUERY_CHANGES, op_query_changes },

	{ RESOURCE_ENTITY, NULL, NULL, "GET", ROUTE_ANY, VERSION_KNOWN, ROUTE_ODATA,
		{ P('o'), P('r'), 0, P('r') }, REST_QUERY_ENTITY, op_get_entity },
	{ RESOURCE_ENTITY, NULL, NULL, "PUT", ROUTE_IF_MATCH, VERSION_KNOWN, ROUTE_EMPTY,
		{ P('o'), 0, P('u'), P('u') }, REST_UPDATE_ENTITY, op_change_entity },
	{ RESOURCE_ENTITY, NULL, NULL, "PUT", ROUTE_NO_IF_MATCH, VERSION_UPSERT, ROUTE_EMPTY,
		{ P('o'), 0, P('a') | P('u'), P('a') | P('u') }, REST_INSERT_OR_REPLACE, op_change_entity },
	{ RESOURCE_ENTITY, NULL, NULL, "MERGE", ROUTE_IF_MATCH, VERSION_KNOWN, ROUTE_EMPTY,
		{ P('o'), 0, P('u'), P('u') }, REST_MERGE_ENTITY, op_change_entity },
	{ RESOURCE_ENTITY, NULL, NULL, "MERGE", ROUTE_NO_IF_MATCH, VERSION_UPSERT, ROUTE_EMPTY,
		{ P('o'), 0, P('a') | P('u'), P('a') | P('u') }, REST_INSERT_OR_MERGE, op_change_entity },
	{ RESOURCE_ENTITY, NULL, NULL, "PATCH", ROUTE_IF_MATCH, VERSION_KNOWN, ROUTE_EMPTY,
		{ P('o'), 0, P('u'), P('u') }, REST_MERGE_ENTITY, op_change_entity },
	{ RESOURCE_ENTITY, NULL, NULL, "PATCH", ROUTE_NO_IF_MATCH, VERSION_UPSERT, ROUTE_EMPTY,
		{ P('o'), 0, P('a') | P('u'), P('a') | P('u') }, REST_INSERT_OR_MERGE, op_change_entity },
	{ RESOURCE_ENTITY, NULL, NULL, "DELETE", ROUTE_ANY, VERSION_KNOWN, ROUTE_EMPTY,
		{ P('o'), P('d'), 0, P('d') }, REST_DELETE_ENTITY, op_change_entity },

	/* Each part is checked by its own route. */
	{ RESOURCE_BATCH, NULL, NULL, "POST", ROUTE_ANY, VERSION_KNOWN, ROUTE_MULTIPART,
		{ P('o'), 0, 0, 0 }, REST_BATCH, op_batch },

	{ RESOURCE_METADATA, NULL, NULL, NULL, ROUTE_ANY, VERSION_KNOWN, ROUTE_EMPTY,
		{ 0, 0, 0, 0 }, REST_OTHER, NULL },
};
/* clang-format on */

static const char *const operations[REST_OPERATIONS_] = {
#define X(symbol_, name_) name_,
	REST_OPERATION_LIST(X)
#undef X
};

static const char *const params[] = { "$filter", "$select", "$top", "$format", "NextPartitionKey",
	"NextRowKey", "NextTableName", "from", "partition", "rows", NULL };

static struct span named_by_body(struct request_context *c)
{
	if (c->route->operation == REST_BATCH)
		return batch_table_name(c);
	return c->route->operation == REST_CREATE_TABLE ? new_table_name(c) : SPAN_LIT("");
}

const struct rest_service rest_tables = {
	.name = "table",
	.default_endpoint = "127.0.0.1:10002",
	.letter = 't',
	.body_limit = LIMIT_BATCH_BYTES,
	.own_bytes = sizeof(struct table_request),
	.since = VERSION_KNOWN,
	.sas = &sas_tables,
	.params = params,
	.routes = routes,
	.nroutes = ARRAY_LEN(routes),
	.operations = operations,
	.noperations = REST_OPERATIONS_,
	.preflight = REST_PREFLIGHT,
	.other = REST_OTHER,
	.front_end = METRICS_REST,
	.properties = ACCOUNT_TABLES,
	.being_deleted = ERR_TABLE_BEING_DELETED,
	.cost = table_request_cost,
	.sign_head = table_sign_head,
	.sign_query = table_sign_query,
	.read_path = table_request_read_path,
	.default_version = table_request_version,
	.begin = table_request_begin,
	.read_method = table_request_read_method,
	.check = table_request_check,
	.named_by_body = named_by_body,
	.end = table_request_end,
	.write_error = table_write_error,
};
