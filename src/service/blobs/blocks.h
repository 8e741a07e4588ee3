/* SPDX-License-Identifier: MIT
 * Block blobs of many blocks: put a block, commit a list of blocks.  And append blobs. */
#ifndef SERVICE_BLOBS_BLOCKS_H
#define SERVICE_BLOBS_BLOCKS_H

#include "service/blobs/blob_change.h"
#include "service/blobs/block_list.h"
#include "service/blobs/staged.h"

#define BLOCKS_MAX 50000         /* in a blob */
#define BLOCKS_STAGED_MAX 100000 /* of a blob, before they are committed */

/* Each call takes the target in w: service, origin, container, name, conditions, detail. */

/* Stages a block: `upload` has ended and has bytes.  Makes an uncommitted blob where there is none;
 * changes nothing of a blob that is there.  It survives a power cut when the call returns.  ERR_BLOB_TYPE,
 * ERR_BLOCK_CONTENT: its id has another length than that of a block of the blob.  ERR_BLOCK_COUNT.  The
 * errors of lease_check_write() and blob_name_check(); ERR_CONTAINER_NOT_FOUND, ERR_THROTTLED. */
enum err block_put(struct blob_change *w, const struct block_id *id, struct blob_upload *upload);

enum block_where {
	BLOCK_COMMITTED,
	BLOCK_STAGED,
	BLOCK_LATEST, /* the staged one, else the committed one */
};
struct block_choice {
	enum block_where where;
	struct block_id id;
};
struct blocks_new {
	struct blob_properties properties;
	enum blob_tier tier;
	struct span metadata; /* is checked */
	const struct block_choice *blocks;
	size_t n;
};
/* Makes the blob of these blocks, in one step; drops the others.  The errors of blob_put(), and
 * ERR_BLOCK_LIST: a block is not there.  ERR_BLOCK_COUNT: more than BLOCKS_MAX.  ERR_BLOB_TYPE. */
enum err blocks_commit(struct blob_change *w, const struct blocks_new *to);

/* For makers of blob_change(): writes a list of blocks, which becomes the extent of w->upload; drops an
 * earlier one.  Call block_list_drop() when the change has ended, also after an error. */
enum err block_list_new(struct blob_change *w, const struct block *blocks, size_t n);
void block_list_drop(struct blob_change *w);
/* Returns the change that moves an upload's extent below a blob, as a block; it borrows the key. */
struct change block_move(struct blob_change *w, uint64_t blob, const struct block_id *id,
	struct blob_upload *upload, char key[STAGED_KEY_CHARS + 1]);

struct append_new {
	struct blob_properties properties;
	struct span metadata; /* is checked */
};
/* Makes or replaces an append blob without bytes.  The errors of blob_put(). */
enum err append_create(struct blob_change *w, const struct append_new *to);

/* Negative: not given. */
struct append_conditions {
	int64_t max_size; /* of the blob, with the block */
	int64_t position; /* where the block begins */
};
struct append_result {
	uint64_t offset; /* of the block */
	uint64_t blocks;
};
/* Appends a block, in one durable step; the upload has ended and has bytes.  ERR_BLOB_NOT_FOUND,
 * ERR_BLOB_TYPE, ERR_APPEND_POSITION, ERR_APPEND_SIZE, ERR_BLOCK_COUNT, and the errors of
 * blob_change(). */
enum err append_block(struct blob_change *w, struct blob_upload *upload,
	const struct append_conditions *conditions, struct append_result *ret);

#endif
