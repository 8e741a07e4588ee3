/* SPDX-License-Identifier: MIT
 * Blobs of a container: put, find, read, list, delete, metadata and properties.
 *
 * A change of a blob and its conditions are one step.  Content that a reader has begun with can be
 * gone before it has read all of it (ERR_GONE): somebody replaced or deleted the blob. */
#ifndef SERVICE_BLOBS_BLOBS_H
#define SERVICE_BLOBS_BLOBS_H

#include "service/blobs/blob_find.h"
#include "service/blobs/conditions.h"
#include "service/blobs/upload.h"
#include "service/core/service.h"

/* Reads n bytes of the content; offset and n must be inside.  ERR_GONE: see above. */
enum err blob_read(
	struct service *s, const struct blob_record *r, uint64_t offset, char *out, size_t n);

/* What a blob becomes.  Its content is `content`, or that of an upload that has ended. */
struct blob_new {
	struct blob_properties properties;
	struct span metadata;       /* is checked */
	struct span content;        /* up to BLOB_INLINE_BYTES */
	struct blob_upload *upload; /* NULL: content */
	enum blob_tier tier;
	bool lazy; /* it need not survive a power cut when the call returns */
};
/* Makes or replaces a block blob.  It survives a power cut when the call returns, unless it is
 * lazy.  ERR_CONTAINER_NOT_FOUND.  Those of blob_name_check(), metadata_check() and
 * blob_conditions_write().  ERR_THROTTLED: others were faster every time. */
enum err blob_put(struct service *s, enum origin origin, uint64_t container_id, struct span name,
	const struct blob_new *to, const struct blob_conditions *conditions, int64_t *ret_etag,
	struct err_detail *detail);
enum snapshots_too {
	SNAPSHOTS_NONE, /* a blob with snapshots is not deleted: ERR_SNAPSHOTS_PRESENT */
	SNAPSHOTS_TOO,
	SNAPSHOTS_ONLY,
};
/* Deletes a blob, its snapshots, or both, in one step, however large they are.  The name may be the key of
 * a snapshot (snapshot_key.h).  ERR_BLOB_NOT_FOUND, ERR_BLOB_CONDITION, and those of
 * lease_check_write(). */
enum err blob_delete(struct service *s, enum origin origin, uint64_t container_id, struct span name,
	enum snapshots_too how, const struct blob_conditions *conditions,
	struct err_detail *detail);
/* Replace the metadata or the properties, and keep the rest.  The errors of blob_put(), and
 * ERR_BLOB_NOT_FOUND. */
enum err blob_set_metadata(struct service *s, enum origin origin, uint64_t container_id,
	struct span name, struct span metadata, const struct blob_conditions *conditions,
	int64_t *ret_etag, struct err_detail *detail);
enum err blob_set_properties(struct service *s, enum origin origin, uint64_t container_id,
	struct span name, const struct blob_properties *to,
	const struct blob_conditions *conditions, int64_t *ret_etag, struct err_detail *detail);

/* One result of a listing: a blob, or a prefix that blobs with the delimiter have in common. */
struct blob_listed {
	bool is_prefix;
	struct span name;
	struct span snapshot;             /* its time; "" for a blob itself */
	const struct blob_record *record; /* of a blob */
};
/* Takes one.  Return false to stop.  No call of the service from here. */
typedef bool (*blob_fn)(void *arg, const struct blob_listed *b);
struct blob_listing {
	struct span prefix, delimiter, marker; /* "" for none */
	size_t max;
	bool snapshots;   /* also them, each behind its blob, the oldest first */
	bool uncommitted; /* also blobs whose upload has not ended */
};
/* Lists in the order of the names' bytes, from `marker` on, up to max results.  Appends to *ret_next,
 * which is empty before, the name with which the next page begins.  The cost grows with the results,
 * not with the blobs behind a prefix. */
enum err blob_list(struct service *s, uint64_t container_id, const struct blob_listing *how,
	blob_fn fn, void *arg, struct buf *ret_next);

/* For a check: sets the extent that the record of a blob names and how many pieces it needs.  Returns
 * false if it names none. */
bool blob_item_extent(const struct item *it, uint64_t *ret_id, uint64_t *ret_pieces);
/* For a check: sets *ret to what is wrong with the pages of a page blob; NULL: nothing. */
enum err blob_pages_wrong(
	struct store *s, struct store_view *v, const struct item *it, const char **ret);
/* For a check: returns what is wrong with an item below a container, with its body; NULL:
 * nothing. */
const char *blob_item_wrong(const struct item *it);

#endif
