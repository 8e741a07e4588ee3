/* SPDX-License-Identifier: MIT
 * The description of the Queue service, with its routes and their SAS permissions. */
#include "rest/queues/queues.h"

#include "base/compiler.h"
#include "rest/core/delegation.h"
#include "rest/core/properties.h"
#include "rest/core/shared_key.h"
#include "rest/queues/message_body.h"
#include "rest/queues/ops.h"
#include "rest/queues/queue_request.h"

/* clang-format off */
#define OPERATION_LIST(X) \
	X(LIST_QUEUES, "ListQueues") \
	X(GET_PROPERTIES, "GetQueueServiceProperties") \
	X(SET_PROPERTIES, "SetQueueServiceProperties") \
	X(GET_DELEGATION_KEY, "GetUserDelegationKey") X(GET_STATS, "GetQueueServiceStats") \
	X(CREATE_QUEUE, "CreateQueue") X(DELETE_QUEUE, "DeleteQueue") \
	X(GET_METADATA, "GetQueueMetadata") X(SET_METADATA, "SetQueueMetadata") \
	X(GET_ACL, "GetQueueAcl") X(SET_ACL, "SetQueueAcl") \
	X(PUT_MESSAGE, "PutMessage") X(GET_MESSAGES, "GetMessages") \
	X(PEEK_MESSAGES, "PeekMessages") X(UPDATE_MESSAGE, "UpdateMessage") \
	X(DELETE_MESSAGE, "DeleteMessage") X(CLEAR_MESSAGES, "ClearMessages") \
	X(PREFLIGHT, "PreflightQueueRequest") \
	X(OTHER, "Other") /* refused before the operation was known */

enum operation {
#define X(symbol_, name_) DO_##symbol_,
	OPERATION_LIST(X)
#undef X
	OPERATIONS_
};

#define P(letter_) PERMISSION(letter_)

static const struct route routes[] = {
	{ QUEUE_SERVICE, NULL, "list", "GET", ROUTE_ANY, VERSION_QUEUES, ROUTE_XML,
		{ P('s'), P('l'), 0, 0 }, DO_LIST_QUEUES, op_list_collections },
	{ QUEUE_SERVICE, "service", "properties", "GET", ROUTE_ANY, VERSION_PROPERTIES, ROUTE_XML,
		{ P('s'), P('r'), 0, 0 }, DO_GET_PROPERTIES, op_get_properties },
	{ QUEUE_SERVICE, "service", "properties", "PUT", ROUTE_ANY, VERSION_PROPERTIES, ROUTE_XML,
		{ P('s'), P('w'), 0, 0 }, DO_SET_PROPERTIES, op_set_properties },
	{ QUEUE_SERVICE, "service", "userdelegationkey", "POST", ROUTE_ANY, VERSION_SAS_USERS, ROUTE_XML,
		{ .delegates = true }, DO_GET_DELEGATION_KEY, op_get_delegation_key },
	{ QUEUE_SERVICE, "service", "stats", "GET", ROUTE_ANY, VERSION_STATS, ROUTE_XML,
		{ P('s'), P('r'), 0, 0 }, DO_GET_STATS, op_get_stats },

	{ QUEUE_ITSELF, NULL, NULL, "PUT", ROUTE_ANY, VERSION_QUEUES, ROUTE_XML,
		{ P('c'), P('c') | P('w'), 0, 0 }, DO_CREATE_QUEUE, op_create_queue },
	{ QUEUE_ITSELF, NULL, NULL, "DELETE", ROUTE_ANY, VERSION_QUEUES, ROUTE_XML,
		{ P('c'), P('d'), 0, 0 }, DO_DELETE_QUEUE, op_delete_queue },
	{ QUEUE_ITSELF, NULL, "metadata", "GET", ROUTE_ANY, VERSION_QUEUES, ROUTE_XML,
		{ P('c'), P('r'), 0, P('r') }, DO_GET_METADATA, op_get_queue_metadata },
	{ QUEUE_ITSELF, NULL, "metadata", "PUT", ROUTE_ANY, VERSION_QUEUES, ROUTE_XML,
		{ P('c'), P('w'), 0, 0 }, DO_SET_METADATA, op_set_collection_metadata },
	{ QUEUE_ITSELF, NULL, "acl", "GET", ROUTE_ANY, VERSION_ACL, ROUTE_XML,
		{ 0, 0, 0, 0 }, DO_GET_ACL, op_get_collection_acl },
	{ QUEUE_ITSELF, NULL, "acl", "PUT", ROUTE_ANY, VERSION_ACL, ROUTE_XML,
		{ 0, 0, 0, 0 }, DO_SET_ACL, op_set_collection_acl },

	{ QUEUE_MESSAGES, NULL, NULL, "POST", ROUTE_ANY, VERSION_QUEUES, ROUTE_XML,
		{ P('o'), P('a'), 0, P('a') }, DO_PUT_MESSAGE, op_put_message },
	{ QUEUE_MESSAGES, NULL, NULL, "GET", ROUTE_ANY, VERSION_QUEUES, ROUTE_XML,
		{ P('o'), P('p'), 0, P('p') }, DO_GET_MESSAGES, op_get_messages },
	{ QUEUE_MESSAGES, NULL, NULL, "DELETE", ROUTE_ANY, VERSION_QUEUES, ROUTE_XML,
		{ P('o'), P('d'), 0, 0 }, DO_CLEAR_MESSAGES, op_clear_messages },
	{ QUEUE_PEEK, NULL, NULL, "GET", ROUTE_ANY, VERSION_QUEUES, ROUTE_XML,
		{ P('o'), P('r'), 0, P('r') }, DO_PEEK_MESSAGES, op_peek_messages },
	{ QUEUE_MESSAGE, NULL, NULL, "PUT", ROUTE_ANY, VERSION_MESSAGE_UPDATE, ROUTE_XML,
		{ P('o'), P('u'), 0, P('u') }, DO_UPDATE_MESSAGE, op_update_message },
	{ QUEUE_MESSAGE, NULL, NULL, "DELETE", ROUTE_ANY, VERSION_QUEUES, ROUTE_XML,
		{ P('o'), P('p'), 0, P('p') }, DO_DELETE_MESSAGE, op_delete_message },
};

static const char *const operations[OPERATIONS_] = {
#define X(symbol_, name_) name_,
	OPERATION_LIST(X)
#undef X
};
/* clang-format on */

static const char *const params[] = { "prefix", "marker", "maxresults", "include", "numofmessages",
	"visibilitytimeout", "messagettl", "peekonly", "popreceipt", NULL };

const struct rest_service rest_queues = {
	.name = "queue",
	.default_endpoint = "queue=127.0.0.1:10001",
	.letter = 'q',
	.body_limit = MESSAGE_BODY_LIMIT,
	.own_bytes = sizeof(struct queue_request),
	.since = VERSION_QUEUES,
	.sas = &sas_queues,
	.params = params,
	.routes = routes,
	.nroutes = ARRAY_LEN(routes),
	.operations = operations,
	.noperations = OPERATIONS_,
	.preflight = DO_PREFLIGHT,
	.other = DO_OTHER,
	.front_end = METRICS_QUEUE,
	.properties = ACCOUNT_QUEUES,
	.being_deleted = ERR_QUEUE_BEING_DELETED,
	.cost = queue_request_cost,
	.sign_head = shared_key_head,
	.sign_query = shared_key_query,
	.read_path = queue_request_read_path,
	.default_version = queue_request_version,
	.write_error = xml_error_write,
	.collections = &queue_collections,
};
