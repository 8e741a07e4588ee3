/* SPDX-License-Identifier: MIT
 * The operations by number.  This table is apart from the routes, because a batch looks up routes
 * and is an operation itself. */
#include "rest/tables/ops.h"

#include "base/compiler.h"

typedef enum err (*op_fn)(struct request_context *c, struct response *r);

static const op_fn ops[REST_OPERATIONS_] = {
	[REST_GET_SERVICE] = op_get_service,
	[REST_GET_PROPERTIES] = op_get_properties,
	[REST_SET_PROPERTIES] = op_set_properties,
	[REST_GET_STATS] = op_get_stats,
	[REST_QUERY_TABLES] = op_query_tables,
	[REST_QUERY_TABLE] = op_get_table,
	[REST_CREATE_TABLE] = op_create_table,
	[REST_DELETE_TABLE] = op_delete_table,
	[REST_GET_ACL] = op_get_acl,
	[REST_SET_ACL] = op_set_acl,
	[REST_QUERY_ENTITIES] = op_query_entities,
	[REST_QUERY_ENTITY] = op_get_entity,
	[REST_INSERT_ENTITY] = op_insert_entity,
	[REST_UPDATE_ENTITY] = op_change_entity,
	[REST_INSERT_OR_REPLACE] = op_change_entity,
	[REST_MERGE_ENTITY] = op_change_entity,
	[REST_INSERT_OR_MERGE] = op_change_entity,
	[REST_DELETE_ENTITY] = op_change_entity,
	[REST_BATCH] = op_batch,
};

enum err op_run(struct request_context *c, enum rest_operation operation, struct response *r)
{
	BUG_ON(ops[operation] == NULL);
	return ops[operation](c, r);
}
