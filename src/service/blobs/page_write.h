/* SPDX-License-Identifier: MIT
 * Changes of page blobs: make, write and clear pages, resize, sequence numbers.
 *
 * The cost of a change grows with the pages that it names, not with the size of the blob. */
#ifndef SERVICE_BLOBS_PAGE_WRITE_H
#define SERVICE_BLOBS_PAGE_WRITE_H

#include "service/blobs/blob_record.h"
#include "service/blobs/conditions.h"
#include "service/core/service.h"

#define PAGES_WRITE_MAX ((uint64_t)4 << 20)

/* The current number must be less or equal, less, equal.  Zeroed: no condition. */
struct sequence_conditions {
	bool has_le, has_lt, has_eq;
	int64_t le, lt, eq;
};

/* Which blob is changed, and under which conditions. */
struct page_target {
	struct service *service;
	enum origin origin;
	uint64_t container;
	struct span name;
	const struct blob_conditions *conditions;
	const struct sequence_conditions *sequence; /* NULL: none */
	uint64_t extent; /* the content that is meant; another one is ERR_BLOB_NOT_FOUND.  0: any */
	bool lazy;       /* the change need not survive a power cut when the call returns */
	bool grows; /* bytes behind the end make the blob larger, to whole pages, in the same step */
};

/* The state of the blob after the change. */
struct page_result {
	int64_t etag, sequence;
	bool grew; /* by bytes behind the end */
};

struct page_blob_new {
	struct blob_properties properties;
	struct span metadata; /* is checked */
	uint64_t size;
	int64_t sequence;
};
/* Makes or replaces a page blob of zeros.  The errors of blob_put().  ERR_OUT_OF_RANGE: the size is
 * above PAGE_BLOB_MAX_BYTES, or not of whole pages. */
enum err page_blob_create(const struct page_target *t, const struct page_blob_new *to,
	struct page_result *ret, struct err_detail *detail);

/* Writes bytes of whole pages, in one step.  ERR_PAGE_RANGE: not whole pages, nothing, or behind the
 * end, unless it grows; then ERR_OUT_OF_RANGE: the size would be above PAGE_BLOB_MAX_BYTES.  ERR_BODY_TOO_LARGE: above PAGES_WRITE_MAX.  ERR_BLOB_NOT_FOUND, ERR_BLOB_TYPE,
 * ERR_SEQUENCE_CONDITION, those of blob_conditions_write(); ERR_THROTTLED. */
enum err pages_write(const struct page_target *t, uint64_t offset, struct span bytes,
	struct page_result *ret, struct err_detail *detail);
/* The same for bytes at any offset: the rest of the first and the last page stays; behind the end it is
 * zeros. */
enum err pages_patch(const struct page_target *t, uint64_t offset, struct span bytes,
	struct page_result *ret, struct err_detail *detail);
/* Clears whole pages: they are zeros, and valid no more.  Up to 4 MiB that is one step; a longer range
 * is cleared from its beginning on, in steps of PAGES_STEP pieces.  The errors of pages_write(). */
#define PAGES_STEP 1025
enum err pages_clear(const struct page_target *t, uint64_t offset, uint64_t n,
	struct page_result *ret, struct err_detail *detail);

enum sequence_action {
	SEQUENCE_KEEP,
	SEQUENCE_MAX,    /* the larger one */
	SEQUENCE_UPDATE, /* the given one */
	SEQUENCE_INCREMENT,
};
struct page_blob_edit {
	const struct blob_properties *properties; /* NULL: they stay */
	bool resize;
	bool only_grows; /* a larger size stays */
	uint64_t size;   /* shrinking clears what is behind it first, as pages_clear() does */
	enum sequence_action action;
	int64_t sequence;
};
/* ERR_OUT_OF_RANGE: the size, as above.  ERR_SEQUENCE_TOO_LARGE: it cannot be incremented. */
enum err page_blob_edit(const struct page_target *t, const struct page_blob_edit *to,
	struct page_result *ret, struct err_detail *detail);

#endif
