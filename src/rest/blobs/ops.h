/* SPDX-License-Identifier: MIT
 * The operations of the Blob service (rest/core/route.h says what each does). */
#ifndef REST_BLOBS_OPS_H
#define REST_BLOBS_OPS_H

#include "rest/blobs/blob_body.h"
#include "rest/core/collections.h"
#include "rest/core/context.h"
#include "service/blobs/blob_change.h"
#include "service/blobs/blob_record.h"
#include "service/blobs/conditions.h"

/* op_containers.c */
extern const struct rest_collections container_collections;
enum err op_account_information(struct request_context *c, struct response *r);
enum err op_create_container(struct request_context *c, struct response *r);
enum err op_delete_container(struct request_context *c, struct response *r);
enum err op_get_container(struct request_context *c, struct response *r);

/* op_list_blobs.c */
enum err op_list_blobs(struct request_context *c, struct response *r);

/* op_blobs.c */
enum err op_put_blob(struct request_context *c, struct response *r);
enum err op_get_blob(struct request_context *c, struct response *r);
enum err op_get_blob_metadata(struct request_context *c, struct response *r);
enum err op_delete_blob(struct request_context *c, struct response *r);
enum err op_set_blob_metadata(struct request_context *c, struct response *r);
enum err op_set_blob_properties(struct request_context *c, struct response *r);

/* op_copy.c */
enum err op_copy_blob(struct request_context *c, struct response *r);
enum err op_snapshot_blob(struct request_context *c, struct response *r);
enum err op_abort_copy(struct request_context *c, struct response *r);
/* op_blocks.c */
enum err op_put_block(struct request_context *c, struct response *r);
enum err op_put_block_list(struct request_context *c, struct response *r);
enum err op_get_block_list(struct request_context *c, struct response *r);
/* Returns the target of a change of the blob in the URL. */
struct blob_change op_change(
	struct request_context *c, uint64_t container, const struct blob_conditions *conditions);
/* Reads the body of a block, of 1 byte at least.  Call blob_body_fini() also after an error.  The errors of
 * blob_body_read(). */
enum err op_block_body(struct request_context *c, struct blob_body *ret);
/* Adds the headers with the sum of a body that was stored. */
void op_block_sums(const struct request_context *c, const struct blob_body *b, struct response *r);

/* op_append.c */
enum err op_append_block(struct request_context *c, struct response *r);
enum err op_put_append_blob(struct request_context *c, const struct blob_conditions *conditions,
	uint64_t container, const struct blob_properties *properties, struct span metadata,
	int64_t *ret_etag);

/* op_leases.c */
enum err op_lease_blob(struct request_context *c, struct response *r);
enum err op_lease_container(struct request_context *c, struct response *r);

/* op_tiers.c */
enum err op_set_tier(struct request_context *c, struct response *r);

/* op_pages.c */
enum err op_put_page(struct request_context *c, struct response *r);
enum err op_get_page_ranges(struct request_context *c, struct response *r);
/* The parts of Put Blob and Set Blob Properties that only page blobs have. */
enum err op_put_page_blob(struct request_context *c, const struct blob_conditions *conditions,
	uint64_t container, const struct blob_properties *properties, struct span metadata,
	int64_t *ret_etag);
bool op_edits_page_blob(const struct request_context *c);
enum err op_edit_page_blob(struct request_context *c, const struct blob_conditions *conditions,
	uint64_t container, const struct blob_properties *properties, struct response *r,
	int64_t *ret_etag);

#endif
