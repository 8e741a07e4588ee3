/* SPDX-License-Identifier: MIT
 * A message as a file: found by its id, with its place and its attributes. */
#ifndef FS_QUEUE_MESSAGE_H
#define FS_QUEUE_MESSAGE_H

#include "base/buf.h"
#include "fs/core/state.h"
#include "fs/queue/nodes.h"
#include "service/queue/messages.h"

#include <sys/stat.h>

/* For a mv into .taken and for .get, as in the protocol. */
#define QUEUE_TAKE_SECONDS 30

struct message {
	struct item item; /* owned */
	struct message_key key;
	char id[MESSAGE_ID_CHARS + 1];
	char receipt[MESSAGE_RECEIPT_CHARS + 1]; /* of its present state */
	enum queue_place place;
};

/* Finds the message with this item id as it is now; want: as in store.h.  On ERR_OK call
 * message_fini(). ERR_NOT_FOUND: there is none, or it is expired. */
enum err message_load(struct fs *fs, uint64_t id, unsigned want, struct message *ret);
void message_fini(struct message *m);
/* Where a message with this key is. */
enum queue_place queue_place_now(struct service *service, const struct message_key *key);
/* The item id in the id of a message; 0: it is none. */
uint64_t message_item(struct span id);
/* How long the message is still invisible, in seconds, rounded up. */
int64_t message_seconds_left(struct service *service, const struct message *m);

/* Attributes of a message that stands under this node. */
enum err message_attr(struct fs *fs, const struct message *m, uint64_t nid, struct stat *ret);
/* One of its user.rowfs.* attributes.  ERR_NO_ATTRIBUTE. */
enum err message_fact(
	struct service *service, const struct message *m, const char *name, struct buf *out);

/* Says why a change of a message is refused that another took meanwhile; ERR_CONDITION_NOT_MET. */
enum err message_refuse_lost(struct err_detail *detail);

#endif
