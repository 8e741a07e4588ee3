/* SPDX-License-Identifier: MIT
 * The description of the Blob service, with its routes and their SAS permissions. */
#include "rest/blobs/blobs.h"

#include "base/compiler.h"
#include "rest/blobs/blob_body.h"
#include "rest/blobs/blob_request.h"
#include "rest/blobs/ops.h"
#include "rest/core/delegation.h"
#include "rest/core/properties.h"
#include "rest/core/shared_key.h"

/* Of a body that is collected. */
#define BODY_LIMIT ((size_t)8 << 20)

/* clang-format off */
#define OPERATION_LIST(X) \
	X(LIST_CONTAINERS, "ListContainers") \
	X(GET_PROPERTIES, "GetBlobServiceProperties") \
	X(SET_PROPERTIES, "SetBlobServiceProperties") \
	X(GET_DELEGATION_KEY, "GetUserDelegationKey") X(GET_STATS, "GetBlobServiceStats") X(GET_ACCOUNT, "GetAccountInformation") \
	X(CREATE_CONTAINER, "CreateContainer") X(DELETE_CONTAINER, "DeleteContainer") \
	X(GET_CONTAINER, "GetContainerProperties") X(GET_CONTAINER_METADATA, "GetContainerMetadata") \
	X(SET_CONTAINER_METADATA, "SetContainerMetadata") \
	X(GET_ACL, "GetContainerAcl") X(SET_ACL, "SetContainerAcl") \
	X(LEASE_CONTAINER, "LeaseContainer") X(LIST_BLOBS, "ListBlobs") \
	X(PUT_BLOB, "PutBlob") X(GET_BLOB, "GetBlob") X(DELETE_BLOB, "DeleteBlob") \
	X(GET_METADATA, "GetBlobMetadata") X(SET_METADATA, "SetBlobMetadata") \
	X(SET_BLOB_PROPERTIES, "SetBlobProperties") X(LEASE_BLOB, "LeaseBlob") \
	X(ABORT_COPY, "AbortCopyBlob") X(SNAPSHOT, "SnapshotBlob") \
	X(PUT_BLOCK, "PutBlock") X(PUT_BLOCK_LIST, "PutBlockList") \
	X(GET_BLOCK_LIST, "GetBlockList") X(APPEND_BLOCK, "AppendBlock") \
	X(SET_TIER, "SetBlobTier") \
	X(PUT_PAGE, "PutPage") X(GET_PAGE_RANGES, "GetPageRanges") \
	X(PREFLIGHT, "PreflightBlobRequest") \
	X(OTHER, "Other") /* refused before the operation was known */

enum operation {
#define X(symbol_, name_) DO_##symbol_,
	OPERATION_LIST(X)
#undef X
	OPERATIONS_
};

#define P(letter_) PERMISSION(letter_)

static const struct route routes[] = {
	{ BLOB_SERVICE, NULL, "list", "GET", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('s'), P('l'), 0, 0, 0 }, DO_LIST_CONTAINERS, op_list_collections },
	{ BLOB_SERVICE, "service", "properties", "GET", ROUTE_ANY, VERSION_PROPERTIES, ROUTE_XML,
		{ P('s'), P('r'), 0, 0, 0 }, DO_GET_PROPERTIES, op_get_properties },
	{ BLOB_SERVICE, "service", "properties", "PUT", ROUTE_ANY, VERSION_PROPERTIES, ROUTE_XML,
		{ P('s'), P('w'), 0, 0, 0 }, DO_SET_PROPERTIES, op_set_properties },
	{ BLOB_SERVICE, "service", "userdelegationkey", "POST", ROUTE_ANY, VERSION_DELEGATION, ROUTE_XML,
		{ .delegates = true }, DO_GET_DELEGATION_KEY, op_get_delegation_key },
	{ BLOB_SERVICE, "service", "stats", "GET", ROUTE_ANY, VERSION_STATS, ROUTE_XML,
		{ P('s'), P('r'), 0, 0, 0 }, DO_GET_STATS, op_get_stats },
	{ BLOB_SERVICE, "account", "properties", "GET", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('s') | P('c') | P('o'), 0, 0, 0, 0 }, DO_GET_ACCOUNT, op_account_information },
	{ BLOB_CONTAINER, "account", "properties", "GET", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('s') | P('c') | P('o'), 0, 0, 0, 0 }, DO_GET_ACCOUNT, op_account_information },
	{ BLOB_ITSELF, "account", "properties", "GET", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('s') | P('c') | P('o'), 0, 0, 0, 0 }, DO_GET_ACCOUNT, op_account_information },

	{ BLOB_CONTAINER, "container", NULL, "PUT", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('c'), P('c') | P('w'), 0, 0, 0 }, DO_CREATE_CONTAINER, op_create_container },
	{ BLOB_CONTAINER, "container", NULL, "DELETE", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('c'), P('d'), 0, 0, 0 }, DO_DELETE_CONTAINER, op_delete_container },
	{ BLOB_CONTAINER, "container", NULL, "GET", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('c'), P('r'), 0, 0, 0 }, DO_GET_CONTAINER, op_get_container },
	{ BLOB_CONTAINER, "container", "metadata", "GET", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('c'), P('r'), 0, 0, 0 }, DO_GET_CONTAINER_METADATA, op_get_container },
	{ BLOB_CONTAINER, "container", "metadata", "PUT", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('c'), P('w'), 0, 0, 0 }, DO_SET_CONTAINER_METADATA, op_set_collection_metadata },
	{ BLOB_CONTAINER, "container", "acl", "GET", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ 0, 0, 0, 0, 0 }, DO_GET_ACL, op_get_collection_acl },
	{ BLOB_CONTAINER, "container", "acl", "PUT", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ 0, 0, 0, 0, 0 }, DO_SET_ACL, op_set_collection_acl },
	{ BLOB_CONTAINER, "container", "lease", "PUT", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('c'), P('w') | P('d'), 0, 0, 0 }, DO_LEASE_CONTAINER, op_lease_container },
	{ BLOB_CONTAINER, "container", "list", "GET", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('c'), P('l'), 0, P('l'), 0 }, DO_LIST_BLOBS, op_list_blobs },

	{ BLOB_ITSELF, NULL, NULL, "PUT", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('w') | P('c'), 0, 0, P('w') | P('c') }, DO_PUT_BLOB, op_put_blob },
	{ BLOB_ITSELF, NULL, NULL, "GET", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('r'), 0, P('r'), 0 }, DO_GET_BLOB, op_get_blob },
	{ BLOB_ITSELF, NULL, NULL, "DELETE", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('d'), 0, P('d'), 0 }, DO_DELETE_BLOB, op_delete_blob },
	{ BLOB_ITSELF, NULL, "metadata", "GET", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('r'), 0, P('r'), 0 }, DO_GET_METADATA, op_get_blob_metadata },
	{ BLOB_ITSELF, NULL, "metadata", "PUT", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('w'), 0, P('w'), 0 }, DO_SET_METADATA, op_set_blob_metadata },
	{ BLOB_ITSELF, NULL, "properties", "PUT", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('w'), 0, P('w'), 0 }, DO_SET_BLOB_PROPERTIES, op_set_blob_properties },
	{ BLOB_ITSELF, NULL, "lease", "PUT", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('w') | P('d'), 0, 0, P('w') | P('d') }, DO_LEASE_BLOB, op_lease_blob },
	{ BLOB_ITSELF, NULL, "copy", "PUT", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('w'), 0, P('w'), 0 }, DO_ABORT_COPY, op_abort_copy },
	{ BLOB_ITSELF, NULL, "block", "PUT", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('w'), 0, P('w'), 0 }, DO_PUT_BLOCK, op_put_block },
	{ BLOB_ITSELF, NULL, "blocklist", "PUT", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('w'), 0, P('w'), 0 }, DO_PUT_BLOCK_LIST, op_put_block_list },
	{ BLOB_ITSELF, NULL, "blocklist", "GET", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('r'), 0, P('r'), 0 }, DO_GET_BLOCK_LIST, op_get_block_list },
	{ BLOB_ITSELF, NULL, "appendblock", "PUT", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('a') | P('w'), 0, 0, P('a') | P('w') }, DO_APPEND_BLOCK, op_append_block },
	{ BLOB_ITSELF, NULL, "snapshot", "PUT", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('w') | P('c'), 0, 0, P('w') | P('c') }, DO_SNAPSHOT, op_snapshot_blob },
	{ BLOB_ITSELF, NULL, "tier", "PUT", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('w'), 0, P('w'), 0 }, DO_SET_TIER, op_set_tier },
	{ BLOB_ITSELF, NULL, "page", "PUT", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('w'), 0, P('w'), 0 }, DO_PUT_PAGE, op_put_page },
	{ BLOB_ITSELF, NULL, "pagelist", "GET", ROUTE_ANY, VERSION_BLOBS, ROUTE_XML,
		{ P('o'), P('r'), 0, P('r'), 0 }, DO_GET_PAGE_RANGES, op_get_page_ranges },
};

static const char *const operations[OPERATIONS_] = {
#define X(symbol_, name_) name_,
	OPERATION_LIST(X)
#undef X
};
/* clang-format on */

static const char *const params[] = { "prefix", "delimiter", "marker", "maxresults", "include",
	"snapshot", "prevsnapshot", "blockid", "blocklisttype", "copyid", NULL };

const struct rest_service rest_blobs = {
	.name = "blob",
	.default_endpoint = "blob=127.0.0.1:10000",
	.letter = 'b',
	.body_limit = BODY_LIMIT,
	.own_bytes = sizeof(struct blob_request),
	.since = VERSION_BLOBS,
	.sas = &sas_blobs,
	.params = params,
	.routes = routes,
	.nroutes = ARRAY_LEN(routes),
	.operations = operations,
	.noperations = OPERATIONS_,
	.preflight = DO_PREFLIGHT,
	.other = DO_OTHER,
	.front_end = METRICS_BLOB,
	.properties = ACCOUNT_BLOBS,
	.being_deleted = ERR_CONTAINER_BEING_DELETED,
	.cost = blob_request_cost,
	.sign_head = shared_key_head,
	.sign_query = shared_key_query,
	.read_path = blob_request_read_path,
	.default_version = blob_request_version,
	.write_error = xml_error_write,
	.collections = &container_collections,
	.admits_anonymous = blob_request_anonymous,
	.streams = &blob_streams,
};
