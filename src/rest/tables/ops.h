/* SPDX-License-Identifier: MIT
 * The operations, one function each.  Each fills the response on ERR_OK; after an error handle.c
 * writes the response from c->detail. */
#ifndef REST_TABLES_OPS_H
#define REST_TABLES_OPS_H

#include "rest/core/context.h"
#include "rest/tables/operations.h"

/* Runs the operation of a route (rest/core/route.h). */
enum err op_run(struct request_context *c, enum rest_operation operation, struct response *r);

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
enum err op_batch(struct request_context *c, struct response *r);
enum err op_get_acl(struct request_context *c, struct response *r);
enum err op_set_acl(struct request_context *c, struct response *r);
enum err op_get_properties(struct request_context *c, struct response *r);
enum err op_set_properties(struct request_context *c, struct response *r);
enum err op_get_stats(struct request_context *c, struct response *r);

#endif
