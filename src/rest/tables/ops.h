/* SPDX-License-Identifier: MIT
 * The operations, one function each (rest/core/route.h says what each does). */
#ifndef REST_TABLES_OPS_H
#define REST_TABLES_OPS_H

#include "rest/tables/table_request.h"

enum err op_get_service(struct request_context *c, struct response *r);
enum err op_query_tables(struct request_context *c, struct response *r);
enum err op_get_table(struct request_context *c, struct response *r);
enum err op_create_table(struct request_context *c, struct response *r);
enum err op_delete_table(struct request_context *c, struct response *r);
enum err op_query_entities(struct request_context *c, struct response *r);
enum err op_get_entity(struct request_context *c, struct response *r);
enum err op_insert_entity(struct request_context *c, struct response *r);
/* PUT, MERGE, DELETE of one entity, with and without If-Match. */
enum err op_change_entity(struct request_context *c, struct response *r);
/* The names that the bodies of these two give; "" without a valid one. */
struct span new_table_name(struct request_context *c);
struct span batch_table_name(struct request_context *c);
enum err op_batch(struct request_context *c, struct response *r);
enum err op_get_acl(struct request_context *c, struct response *r);
enum err op_set_acl(struct request_context *c, struct response *r);

/* Of rowfs alone: the feed of changes. */
enum err op_query_changes(struct request_context *c, struct response *r);

#endif
