/* SPDX-License-Identifier: MIT
 * Queues of an account: create, find, list, delete, metadata and stored access policies.  Messages:
 * messages.h.
 *
 * A queue is an item of its account in CLASS_QUEUE; its body holds the metadata and the policies.
 * Callers name a queue by the id of that item, which it keeps for life. */
#ifndef SERVICE_QUEUE_QUEUES_H
#define SERVICE_QUEUE_QUEUES_H

#include "base/buf.h"
#include "model/metadata.h"
#include "service/core/service.h"

/* Valid only during the call that is given it; queue_info_fini() ends one that queue_find() gave. */
struct queue_info {
	uint64_t id;
	struct span name;
	struct span metadata; /* model/metadata.h */
	struct span policies; /* as XML (codec/access_policy_xml.h); empty: none */
	/* Messages, also invisible ones, and expired ones that still take space: never too low. */
	uint64_t messages;
	struct item item; /* owns the spans */
};

void queue_info_fini(struct queue_info *q);

/* Creates a queue.  metadata is a text of model/metadata.h, which is checked.
 *
 * *ret_created is false if the queue is there with equal metadata, which is a success.
 * ERR_QUEUE_EXISTS: it is there with other metadata.  ERR_NAME_INVALID, ERR_NAME_TOO_SHORT,
 * ERR_NAME_TOO_LONG, ERR_METADATA_INVALID, ERR_METADATA_TOO_LARGE, ERR_ACCOUNT_NOT_FOUND. */
enum err queue_create(struct service *s, enum origin origin, uint64_t account_id, struct span name,
	struct span metadata, bool *ret_created, struct err_detail *detail);
/* Deletes a queue with all its messages.  The name is free at once, however many there are.
 * ERR_QUEUE_NOT_FOUND. */
enum err queue_delete(
	struct service *s, enum origin origin, uint64_t queue_id, struct err_detail *detail);

/* Deletes a queue that holds no message, not even an invisible one.  ERR_NOT_EMPTY.
 * ERR_QUEUE_NOT_FOUND.  ERR_THROTTLED: messages came and went faster every time. */
enum err queue_delete_empty(
	struct service *s, enum origin origin, uint64_t queue_id, struct err_detail *detail);

/* Finds a queue by its name.  On ERR_OK call queue_info_fini().  ERR_QUEUE_NOT_FOUND. */
enum err queue_find(
	struct service *s, uint64_t account_id, struct span name, struct queue_info *ret);
/* Finds only its id, as the first step of every operation on messages. */
enum err queue_id(struct service *s, uint64_t account_id, struct span name, uint64_t *ret);

/* Takes one queue of a listing.  Return false to stop.  No call of the service from here. */
typedef bool (*queue_fn)(void *arg, const struct queue_info *q);
/* Lists the queues whose names begin with prefix, in order, from the name `marker` on (empty: from
 * the first), up to max.  Appends to *ret_next, which is empty before, the name with which the next
 * page begins; it stays empty at the end. */
enum err queue_list(struct service *s, uint64_t account_id, struct span prefix, struct span marker,
	size_t max, queue_fn fn, void *arg, struct buf *ret_next);

/* Replace the metadata or the policies, and keep the other.  ERR_QUEUE_NOT_FOUND, those of
 * metadata_check(); ERR_THROTTLED: messages came faster every time. */
enum err queue_set_metadata(struct service *s, enum origin origin, uint64_t queue_id,
	struct span metadata, struct err_detail *detail);
enum err queue_set_policies(struct service *s, enum origin origin, uint64_t queue_id,
	struct span xml, struct err_detail *detail);

/* For a check: returns what is wrong with the item of a queue, with its body; NULL: nothing. */
const char *queue_item_wrong(const struct item *it);

#endif
