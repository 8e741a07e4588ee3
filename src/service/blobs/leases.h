/* SPDX-License-Identifier: MIT
 * Lease operations on blobs and containers.  A lease is a member of the blob's record, or of the
 * container's body, so it is checked in the step that makes a change. */
#ifndef SERVICE_BLOBS_LEASES_H
#define SERVICE_BLOBS_LEASES_H

#include "model/lease.h"
#include "service/blobs/conditions.h"
#include "service/core/collections.h"

struct lease_result {
	int64_t etag; /* as before */
	int seconds;  /* until a lease that was broken ends; 0: it has ended */
};

/* Changes the lease of a blob, under the conditions but for their lease id.  The errors of lease_apply();
 * ERR_BLOB_NOT_FOUND, ERR_CONTAINER_NOT_FOUND, ERR_BLOB_CONDITION, ERR_THROTTLED. */
enum err blob_lease(struct service *s, enum origin origin, uint64_t container_id, struct span name,
	const struct lease_request *r, const struct blob_conditions *conditions,
	struct lease_result *ret, struct err_detail *detail);
/* The same for a container. */
enum err container_lease(struct service *s, enum origin origin, uint64_t container_id,
	const struct lease_request *r, const struct blob_conditions *conditions,
	struct lease_result *ret, struct err_detail *detail);

/* Check whether a container may be deleted, or be read or changed otherwise: conditions and lease.
 * The errors of blob_conditions_write(); ERR_LEASE_ID_MISSING, ERR_CONTAINER_LEASE_MISMATCH,
 * ERR_CONTAINER_LEASE_ABSENT, ERR_LEASE_LOST. */
enum err container_check_delete(
	struct service *s, const struct collection *now, const struct blob_conditions *c);
enum err container_check_use(
	struct service *s, const struct collection *now, const struct blob_conditions *c);

#endif
