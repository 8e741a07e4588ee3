/* SPDX-License-Identifier: MIT
 * Containers of an account: create, find, list, delete, metadata, stored access policies.  Blobs:
 * blobs.h.
 *
 * A container is an item of its account in CLASS_BLOB.  Callers name it by the id of that item, which
 * it keeps for life. */
#ifndef SERVICE_BLOBS_CONTAINERS_H
#define SERVICE_BLOBS_CONTAINERS_H

#include "base/buf.h"
#include "model/metadata.h"
#include "service/blobs/conditions.h"
#include "service/core/service.h"

/* What needs no credential. */
enum container_access {
	CONTAINER_PRIVATE,
	CONTAINER_BLOBS, /* reading blobs */
	CONTAINER_ALL,   /* also listing them */
};

/* Valid only during the call that is given it; container_info_fini() ends one that container_find()
 * gave. */
struct container_info {
	uint64_t id;
	int64_t etag; /* ticks: the last change of the container itself */
	enum container_access access;
	struct span name;
	struct span metadata; /* model/metadata.h */
	struct span policies; /* as XML (codec/access_policy_xml.h); empty: none */
	struct item item;     /* owns the spans */
};

void container_info_fini(struct container_info *c);

/* Creates a container.  metadata is a text of model/metadata.h, which is checked.
 * ERR_CONTAINER_EXISTS.  ERR_NAME_INVALID, ERR_NAME_TOO_SHORT, ERR_NAME_TOO_LONG,
 * ERR_METADATA_INVALID, ERR_METADATA_TOO_LARGE, ERR_ACCOUNT_NOT_FOUND. */
enum err container_create(struct service *s, enum origin origin, uint64_t account_id,
	struct span name, struct span metadata, enum container_access access, int64_t *ret_etag,
	struct err_detail *detail);
/* Deletes a container with all its blobs.  The name is free at once.  ERR_CONTAINER_NOT_FOUND,
 * ERR_BLOB_CONDITION. */
enum err container_delete(struct service *s, enum origin origin, uint64_t id,
	const struct blob_conditions *conditions, struct err_detail *detail);

/* Finds a container by its name.  On ERR_OK call container_info_fini().
 * ERR_CONTAINER_NOT_FOUND. */
enum err container_find(
	struct service *s, uint64_t account_id, struct span name, struct container_info *ret);
/* Finds only its id, as the first step of every operation on blobs. */
enum err container_id(struct service *s, uint64_t account_id, struct span name, uint64_t *ret);

/* Takes one container of a listing.  Return false to stop.  No call of the service from here. */
typedef bool (*container_fn)(void *arg, const struct container_info *c);
/* Lists the containers whose names begin with prefix, in order, from the name `marker` on (empty:
 * from the first), up to max.  Appends to *ret_next, which is empty before, the name with which the
 * next page begins; it stays empty at the end. */
enum err container_list(struct service *s, uint64_t account_id, struct span prefix,
	struct span marker, size_t max, container_fn fn, void *arg, struct buf *ret_next);

/* Replace the metadata, or the policies and the access, and keep the rest.
 * ERR_CONTAINER_NOT_FOUND, ERR_BLOB_CONDITION, those of metadata_check(); ERR_THROTTLED: other
 * changes came faster every time. */
enum err container_set_metadata(struct service *s, enum origin origin, uint64_t id,
	struct span metadata, const struct blob_conditions *conditions, int64_t *ret_etag,
	struct err_detail *detail);
enum err container_set_policies(struct service *s, enum origin origin, uint64_t id, struct span xml,
	enum container_access access, const struct blob_conditions *conditions, int64_t *ret_etag,
	struct err_detail *detail);

/* For a check: returns what is wrong with the item of a container, with its body; NULL: nothing. */
const char *container_item_wrong(const struct item *it);

#endif
