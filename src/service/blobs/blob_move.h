/* SPDX-License-Identifier: MIT
 * Moving a blob to another name or container of the same account. */
#ifndef SERVICE_BLOBS_BLOB_MOVE_H
#define SERVICE_BLOBS_BLOB_MOVE_H

#include "service/core/service.h"

struct blob_name {
	uint64_t container;
	struct span name;
};
/* Moves a blob with its content and metadata, in one step that copies nothing, and replaces what stands
 * at `to` unless `keep`.  ERR_SNAPSHOTS_PRESENT: its snapshots would stay behind.  The ETag stays.  A later sync of the store
 * makes it durable.  ERR_BLOB_NOT_FOUND, ERR_BLOB_EXISTS,
 * ERR_CONTAINER_NOT_FOUND, those of blob_name_check() and lease_check_write(); ERR_THROTTLED. */
enum err blob_move(struct service *s, enum origin origin, struct blob_name from,
	struct blob_name to, bool keep, struct err_detail *detail);

#endif
