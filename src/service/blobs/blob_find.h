/* SPDX-License-Identifier: MIT
 * Finding a blob of a container by its name. */
#ifndef SERVICE_BLOBS_BLOB_FIND_H
#define SERVICE_BLOBS_BLOB_FIND_H

#include "service/blobs/blob_record.h"
#include "service/core/service.h"

/* Valid only during the call that is given it; blob_info_fini() ends one that blob_find() gave. */
struct blob_info {
	uint64_t id;
	struct span name;
	struct blob_record record;
	struct item item; /* owns the spans */
};
void blob_info_fini(struct blob_info *b);

/* Finds a blob.  On ERR_OK call blob_info_fini().  ERR_BLOB_NOT_FOUND. */
enum err blob_find(
	struct service *s, uint64_t container_id, struct span name, struct blob_info *ret);
/* The same, but finds also a name whose upload has not ended (BLOB_NONE).  ERR_NOT_FOUND. */
enum err blob_look(
	struct service *s, uint64_t container_id, struct span name, struct blob_info *ret);
/* Returns the place of a blob in the store. */
struct item_ref blob_place(uint64_t container_id, struct span name);

#endif
