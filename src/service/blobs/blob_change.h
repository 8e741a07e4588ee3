/* SPDX-License-Identifier: MIT
 * How a blob is changed: its record, and what goes with it, in one step with the conditions. */
#ifndef SERVICE_BLOBS_BLOB_CHANGE_H
#define SERVICE_BLOBS_BLOB_CHANGE_H

#include "service/blobs/blob_find.h"
#include "service/blobs/conditions.h"
#include "service/blobs/upload.h"

struct blob_change {
	struct service *service;
	enum origin origin;
	uint64_t container;
	struct span name;
	const struct blob_conditions *conditions;
	bool lazy;       /* it need not survive a power cut when the call returns */
	bool keeps_etag; /* the maker says the ETag, and no lease is needed */
	struct err_detail *detail;

	/* Of the maker: an upload whose extent becomes the blob's (NULL: none), and changes below
	 * the blob that go into the same commit. */
	struct blob_upload *upload;
	const struct change *more;
	size_t nmore;

	/* For the maker, while it runs: what stands there; id 0: nothing. */
	struct blob_info there;

	int64_t etag; /* the new one, after blob_change() */
};

/* Makes the new record from the one that is there (NULL: none); *ret may borrow from it and from arg.
 * It is called again if another change was faster, and then sets `more` anew; it may say so itself, by
 * ERR_CONDITION_NOT_MET. */
typedef enum err (*blob_make_fn)(
	void *arg, struct blob_change *w, const struct blob_record *there, struct blob_record *ret);

/* Checks the conditions, calls the maker, checks the lease, and commits.  The new record keeps a lease
 * that is in force.  Then removes extents of the blob that no record names.  The errors of
 * blob_conditions_write(), of the maker and of lease_check_write(); ERR_CONTAINER_NOT_FOUND.
 * ERR_THROTTLED: others were faster every time. */
enum err blob_change(struct blob_change *w, blob_make_fn make, void *arg);

/* Makes the name of a blob whose content comes later (BLOB_NONE).  The errors of service_apply(). */
enum err blob_make_name(struct blob_change *w);
/* Returns whether the error means that another change was faster: read the blob again. */
bool blob_change_overtaken(enum err e);
/* Returns whether the container is gone. */
bool blob_change_lost(struct blob_change *w);

#endif
