/* SPDX-License-Identifier: MIT
 * What the files of this folder share about messages. */
#ifndef SERVICE_QUEUE_MESSAGE_PARTS_H
#define SERVICE_QUEUE_MESSAGE_PARTS_H

#include "service/queue/messages.h"

/* ERR_QUERY_RANGE, with the name, unless min <= value <= max. */
enum err message_check_range(
	const char *what, int64_t value, int64_t min, int64_t max, struct err_detail *detail);
/* Does it for the seconds that a message is to be invisible. */
enum err message_check_hidden(int64_t seconds, int64_t min, struct err_detail *detail);
/* Returns the time that comes `seconds` after ticks, at most MESSAGE_EXPIRES_NEVER. */
int64_t message_time_later(int64_t ticks, int64_t seconds);
struct item_ref message_place(uint64_t queue, struct span key);
/* Fills in *m, which borrows the text. */
void message_describe(struct queue_message *m, uint64_t item, int64_t version,
	const struct message_key *key, struct span text);
/* Returns true if a change failed because another thread or process changed the message first. */
bool message_race_lost(enum err e);
/* Finds one message by its id, as it is now.  On ERR_OK call item_fini().  ERR_MESSAGE_NOT_FOUND. */
enum err message_find_item(struct service *s, uint64_t queue, struct span id, unsigned want,
	struct item *ret, struct message_key *ret_key);

#endif
