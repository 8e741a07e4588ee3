/* SPDX-License-Identifier: MIT
 * The operations that service/core/metrics.h counts.  The names are those of the service's logs. */
#ifndef REST_TABLES_OPERATIONS_H
#define REST_TABLES_OPERATIONS_H

/* clang-format off */
#define REST_OPERATION_LIST(X) \
	X(GET_SERVICE, "GetService") \
	X(GET_PROPERTIES, "GetTableServiceProperties") \
	X(SET_PROPERTIES, "SetTableServiceProperties") \
	X(GET_STATS, "GetTableServiceStats") \
	X(QUERY_TABLES, "QueryTables") X(QUERY_TABLE, "QueryTable") \
	X(CREATE_TABLE, "CreateTable") X(DELETE_TABLE, "DeleteTable") \
	X(GET_ACL, "GetTableAcl") X(SET_ACL, "SetTableAcl") \
	X(QUERY_ENTITIES, "QueryEntities") X(QUERY_ENTITY, "QueryEntity") \
	X(INSERT_ENTITY, "InsertEntity") \
	X(UPDATE_ENTITY, "UpdateEntity") X(INSERT_OR_REPLACE, "InsertOrReplaceEntity") \
	X(MERGE_ENTITY, "MergeEntity") X(INSERT_OR_MERGE, "InsertOrMergeEntity") \
	X(DELETE_ENTITY, "DeleteEntity") \
	X(QUERY_CHANGES, "QueryChanges") \
	X(BATCH, "EntityGroupTransaction") \
	X(PREFLIGHT, "PreflightTableRequest") \
	X(OTHER, "Other") /* refused before the operation was known */
/* clang-format on */

enum rest_operation {
#define X(symbol_, name_) REST_##symbol_,
	REST_OPERATION_LIST(X)
#undef X
	REST_OPERATIONS_
};

#endif
