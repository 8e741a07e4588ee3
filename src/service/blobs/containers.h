/* SPDX-License-Identifier: MIT
 * Containers of an account, by the functions of collections.h.  Blobs: blobs.h. */
#ifndef SERVICE_BLOBS_CONTAINERS_H
#define SERVICE_BLOBS_CONTAINERS_H

#include "service/core/collections.h"

/* The requests that a container allows without a credential. */
enum container_access {
	CONTAINER_PRIVATE,
	CONTAINER_BLOBS, /* reading blobs */
	CONTAINER_ALL,   /* also listing them */
};

static inline enum err container_find(
	struct service *s, uint64_t account_id, struct span name, struct collection *ret)
{
	return collection_find(s, &collection_container, account_id, name, ret);
}
static inline enum err container_id(
	struct service *s, uint64_t account_id, struct span name, uint64_t *ret)
{
	return collection_id(s, &collection_container, account_id, name, ret);
}

#endif
