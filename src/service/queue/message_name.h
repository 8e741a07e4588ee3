/* SPDX-License-Identifier: MIT
 * The names of a message: the key of its item, its id for clients, and its pop receipts. */
#ifndef SERVICE_QUEUE_MESSAGE_NAME_H
#define SERVICE_QUEUE_MESSAGE_NAME_H

#include "base/clock.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define MESSAGE_EXPIRES_NEVER TICKS_MAX

/* The key: three times with 16 digits each, and the count with 8, all hexadecimal.  The time of
 * insertion is unique in a queue, and so is the key. */
#define MESSAGE_KEY_CHARS 56
struct message_key {
	int64_t visible, inserted, expires; /* ticks */
	uint32_t taken;
};

/* Returns a span of out. */
struct span message_key_write(const struct message_key *k, char out[MESSAGE_KEY_CHARS + 1]);
/* Returns false if this is no key of a message. */
bool message_key_read(struct span key, struct message_key *ret);

/* The id: a GUID.  Its first half is the time of insertion, so ids sort by it; its second half is the
 * id of the item, which leads to the message. */
#define MESSAGE_ID_CHARS 36
void message_id_write(int64_t inserted, uint64_t item, char out[MESSAGE_ID_CHARS + 1]);
/* Accepts digits of either case.  Returns false if this is no id of a message. */
bool message_id_read(struct span id, int64_t *ret_inserted, uint64_t *ret_item);

/* The receipt: the item's version and its id. */
#define MESSAGE_RECEIPT_CHARS 32
void message_receipt_write(int64_t version, uint64_t item, char out[MESSAGE_RECEIPT_CHARS + 1]);
/* Returns false if this is no receipt. */
bool message_receipt_read(struct span receipt, int64_t *ret_version, uint64_t *ret_item);

#endif
