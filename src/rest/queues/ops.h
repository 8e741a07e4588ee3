/* SPDX-License-Identifier: MIT
 * The operations, one function each (rest/core/route.h says what each does). */
#ifndef REST_QUEUES_OPS_H
#define REST_QUEUES_OPS_H

#include "rest/core/collections.h"
#include "rest/queues/queue_request.h"

extern const struct rest_collections queue_collections; /* op_queues.c */

enum err op_create_queue(struct request_context *c, struct response *r);
enum err op_delete_queue(struct request_context *c, struct response *r);
enum err op_get_queue_metadata(struct request_context *c, struct response *r);
enum err op_put_message(struct request_context *c, struct response *r);
enum err op_get_messages(struct request_context *c, struct response *r);
enum err op_peek_messages(struct request_context *c, struct response *r);
enum err op_update_message(struct request_context *c, struct response *r);
enum err op_delete_message(struct request_context *c, struct response *r);
enum err op_clear_messages(struct request_context *c, struct response *r);

#endif
