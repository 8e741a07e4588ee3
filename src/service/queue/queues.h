/* SPDX-License-Identifier: MIT
 * Queues of an account, by the functions of collections.h.  Messages: messages.h. */
#ifndef SERVICE_QUEUE_QUEUES_H
#define SERVICE_QUEUE_QUEUES_H

#include "service/core/collections.h"

/* Creates a queue.  metadata is a text of model/metadata.h.
 *
 * *ret_created is false if the queue is there with equal metadata, which is a success.
 * ERR_QUEUE_EXISTS: it is there with other metadata.  The errors of collection_create(). */
enum err queue_create(struct service *s, enum origin origin, uint64_t account_id, struct span name,
	struct span metadata, bool *ret_created, struct err_detail *detail);
/* Deletes a queue that holds no message, not even an invisible one.  ERR_NOT_EMPTY.
 * ERR_QUEUE_NOT_FOUND. */
enum err queue_delete_empty(
	struct service *s, enum origin origin, uint64_t queue_id, struct err_detail *detail);

static inline enum err queue_delete(
	struct service *s, enum origin origin, uint64_t queue_id, struct err_detail *detail)
{
	return collection_delete(s, origin, &collection_queue, queue_id, NULL, NULL, false, detail);
}
static inline enum err queue_find(
	struct service *s, uint64_t account_id, struct span name, struct collection *ret)
{
	return collection_find(s, &collection_queue, account_id, name, ret);
}
static inline enum err queue_id(
	struct service *s, uint64_t account_id, struct span name, uint64_t *ret)
{
	return collection_id(s, &collection_queue, account_id, name, ret);
}

#endif
