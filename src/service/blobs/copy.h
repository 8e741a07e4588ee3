/* SPDX-License-Identifier: MIT
 * Copies of blobs.  A copy has content of its own, so no later write changes it. */
#ifndef SERVICE_BLOBS_COPY_H
#define SERVICE_BLOBS_COPY_H

#include "service/blobs/blob_record.h"
#include "service/blobs/conditions.h"
#include "service/blobs/snapshot_key.h"
#include "service/core/service.h"

struct blob_upload;

/* Copies all pieces of an extent into the extent of an upload, a MiB a commit.  ERR_GONE: the extent
 * was removed meanwhile. */
enum err extent_copy(
	struct service *s, uint64_t from, struct blob_upload *to, struct err_detail *detail);

struct blob_copy {
	struct service *service;
	enum origin origin;
	uint64_t container; /* of the target */
	struct span name;
	const struct blob_conditions *conditions;
	uint64_t from_container;
	struct span from_name;
	const struct blob_conditions *from_conditions; /* as of a read */
	const struct span *metadata;                   /* NULL: that of the source; is checked */
	const struct blob_properties *properties;      /* NULL: those of the source */
	enum blob_tier tier;                           /* of a block blob */
	bool only_block;                               /* a source of another type: ERR_BLOB_TYPE */
	struct blob_copied copied;                     /* `when` is set; id.n 0: left out */
};
/* Copies a blob within the store in constant memory, and returns when it is complete.  It survives a
 * power cut then.  The errors of blob_put().  ERR_BLOB_NOT_FOUND: there is no source.
 * ERR_SOURCE_CONDITION, ERR_BLOB_TYPE.  ERR_THROTTLED: the source was changed during each of several tries. */
enum err blob_copy(const struct blob_copy *c, int64_t *ret_etag, struct err_detail *detail);

/* Makes a snapshot of the source: a copy with a key of snapshot_key.h.  Without other metadata it has the
 * ETag of the source.  `name`, `container` and `conditions` are not used; from_conditions are as of a
 * change.  Writes the time to ret_time.  The errors of blob_copy() and of blob_conditions_write(). */
enum err blob_snapshot(const struct blob_copy *c, char ret_time[SNAPSHOT_TIME_CHARS + 1],
	int64_t *ret_etag, struct err_detail *detail);

#endif
