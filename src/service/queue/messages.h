/* SPDX-License-Identifier: MIT
 * Messages of a queue: put, take, peek, update, delete and clear.
 *
 * A message is an item of its queue; its body is the text.  Its key says the rest: when it is
 * visible next, when it was inserted, when it expires, how often it was taken.  The order of keys is
 * the order in which messages become visible.  So a take is a move to a later key, and costs the
 * same in a queue of any length.
 *
 * A message that is taken stays in the queue, invisible, until its taker deletes it or its time is
 * over; then another takes it.  An expired message is gone for every operation.  A take reclaims
 * the expired messages that it meets.
 *
 * The pop receipt names one state of a message: each take and each update gives a new one.  A receipt
 * is good while nobody took, updated or deleted the message, also after its time is over.
 *
 * Waiting for a message: subscribers to events.h are told of every put, take and update
 * (now.kind is ITEM_MESSAGE, now.parent the queue); queue_next_visible() says when the next message
 * becomes visible by itself. */
#ifndef SERVICE_QUEUE_MESSAGES_H
#define SERVICE_QUEUE_MESSAGES_H

#include "service/core/service.h"
#include "service/queue/message_name.h"

/* In place of seconds: a message never expires. */
#define MESSAGE_NEVER (-1)

/* The time to live of a message that names none. */
#define MESSAGE_TTL_DEFAULT_S (7 * 86400)

struct queue_message {
	char id[MESSAGE_ID_CHARS + 1];
	char receipt[MESSAGE_RECEIPT_CHARS + 1]; /* empty after a peek */
	int64_t inserted, expires, visible; /* ticks; expires is MESSAGE_EXPIRES_NEVER or less */
	uint32_t taken;                     /* how often */
	struct span text;                   /* of a take or a peek: valid during the call */
};

/* Puts a message.  It becomes visible after visibility_s seconds and expires after ttl_s, or
 * never.  *ret has no text.  durable: it survives a power cut when the call returns.
 *
 * ERR_QUEUE_NOT_FOUND.  ERR_MESSAGE_TOO_LARGE.  ERR_QUERY_RANGE: visibility_s is not between 0 and
 * LIMIT_MESSAGE_HIDDEN_S or not below ttl_s, or ttl_s is not positive. */
enum err message_put(struct service *s, enum origin origin, uint64_t queue_id, struct span text,
	int64_t visibility_s, int64_t ttl_s, bool durable, struct queue_message *ret,
	struct err_detail *detail);

/* A message that is to be put as a part of a change set. */
struct prepared_message {
	struct change change; /* copy it into the set; it borrows from here and from the text */
	struct message_key key;
	char text_of_key[MESSAGE_KEY_CHARS + 1];
};
/* Prepares the change of message_put(), for a set that changes other items too.  Such a set spans
 * directories (STORE_CAN_SPAN).  *ret must not move until the set was applied.  The errors of
 * message_put() but for ERR_QUEUE_NOT_FOUND: service_apply() gives ERR_NOT_FOUND there, and
 * ERR_NAME_EXISTS where it must be prepared anew. */
enum err message_prepare(struct service *s, uint64_t queue_id, struct span text,
	int64_t visibility_s, int64_t ttl_s, struct prepared_message *ret,
	struct err_detail *detail);

/* Takes one message of a take or a peek.  Return false to stop. */
typedef bool (*message_fn)(void *arg, const struct queue_message *m);

/* Takes up to n visible messages, n from 1 to LIMIT_MESSAGES_TAKEN, and makes them invisible for
 * visibility_s seconds, 1 to LIMIT_MESSAGE_HIDDEN_S.  Calls fn for each, in order, after the
 * commit.  Messages that another thread is taking are skipped.  ERR_QUERY_RANGE.  ERR_THROTTLED:
 * other processes were faster every time. */
enum err message_take(struct service *s, enum origin origin, uint64_t queue_id, unsigned n,
	int64_t visibility_s, bool durable, message_fn fn, void *arg, struct err_detail *detail);
/* Does the same for one visible message with this id.  Of several takers one gets it, and the others
 * ERR_MESSAGE_NOT_FOUND. */
enum err message_take_one(struct service *s, enum origin origin, uint64_t queue_id, struct span id,
	int64_t visibility_s, bool durable, message_fn fn, void *arg, struct err_detail *detail);

/* Calls fn for up to n visible messages and changes nothing.  ERR_QUERY_RANGE. */
enum err message_peek(struct service *s, uint64_t queue_id, unsigned n, message_fn fn, void *arg);

/* Makes the message visible visibility_s seconds from now, 0 to LIMIT_MESSAGE_HIDDEN_S.  text: its new
 * text; NULL: the old one stays.  *ret has the new receipt and no text.
 *
 * ERR_MESSAGE_NOT_FOUND: there is no such message, or the receipt is of an earlier state.
 * ERR_RECEIPT_MISMATCH: the receipt is another message's.  ERR_QUERY_VALUE: it is no receipt.
 * ERR_MESSAGE_TOO_LARGE, ERR_QUERY_RANGE. */
enum err message_update(struct service *s, enum origin origin, uint64_t queue_id, struct span id,
	struct span receipt, int64_t visibility_s, const struct span *text, bool durable,
	struct queue_message *ret, struct err_detail *detail);
/* Deletes a message.  The errors of message_update(). */
enum err message_delete(struct service *s, enum origin origin, uint64_t queue_id, struct span id,
	struct span receipt, bool durable, struct err_detail *detail);
/* Deletes all messages that are there when it begins, in several commits.  ERR_QUEUE_NOT_FOUND. */
enum err queue_clear(
	struct service *s, enum origin origin, uint64_t queue_id, struct err_detail *detail);
/* Deletes those that have expired.  The errors of queue_clear(). */
enum err queue_clear_expired(
	struct service *s, enum origin origin, uint64_t queue_id, struct err_detail *detail);

/* Sets *ret to the first time after `now` at which a message of the queue becomes visible by itself;
 * INT64_MAX if there is none. */
enum err queue_next_visible(struct service *s, uint64_t queue_id, int64_t now, int64_t *ret);

/* For a check: returns what is wrong with the item of a message, with its body; NULL: nothing. */
const char *message_item_wrong(const struct item *it);

#endif
