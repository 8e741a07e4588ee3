/* SPDX-License-Identifier: MIT
 * The nodes of queues.  All are computed (fs/core/nid.h): a number of this list, and an id.  A
 * message has another node in each directory where it can be, so the kernel never takes a move
 * for none. */
#ifndef FS_QUEUE_NODES_H
#define FS_QUEUE_NODES_H

#include "fs/core/nid.h"

enum queue_node {
	QUEUE_NODE_ROOT = DIR_CONTROL_QUEUES, /* .queue; the account's id */
	/* The directories of a queue, in the order of enum queue_place; the queue's id. */
	QUEUE_NODE_VISIBLE,
	QUEUE_NODE_TAKEN,
	QUEUE_NODE_HIDDEN,
	/* Its files. */
	QUEUE_NODE_GET,
	QUEUE_NODE_PEEK,
	QUEUE_NODE_WAIT,
	/* A message in each of the directories; the message's id. */
	QUEUE_NODE_VISIBLE_MESSAGE,
	QUEUE_NODE_TAKEN_MESSAGE,
	QUEUE_NODE_HIDDEN_MESSAGE,
	QUEUE_NODE_NAMED, /* a name that a user chose; its number (fs/queue/names.h) */
	QUEUE_NODE_END
};
_Static_assert(QUEUE_NODE_END <= DIR_CONTROL_QUEUES_LAST + 1, "they have this range");

/* Where a message is. */
enum queue_place {
	QUEUE_PLACE_VISIBLE, /* the next take can get it */
	QUEUE_PLACE_TAKEN,   /* invisible, since somebody took it */
	QUEUE_PLACE_HIDDEN,  /* invisible, and nobody took it yet */
};

static inline uint64_t queue_nid(enum queue_node which, uint64_t id)
{
	return NID_VIRTUAL | (uint64_t)which << STORE_ID_BITS | id;
}

static inline enum queue_node queue_node_of(uint64_t nid)
{
	return (enum queue_node)(nid >> STORE_ID_BITS & NID_GENERATION_MASK);
}

/* Whether the node is one of the three directories of a queue. */
static inline bool queue_nid_is_place(uint64_t nid)
{
	enum queue_node which = queue_node_of(nid);
	return nid_kind(nid) == NID_KIND_QUEUE && which >= QUEUE_NODE_VISIBLE &&
		which <= QUEUE_NODE_HIDDEN;
}

/* Of one of those: which. */
static inline enum queue_place queue_place_of(uint64_t nid)
{
	return (enum queue_place)(queue_node_of(nid) - QUEUE_NODE_VISIBLE);
}

#endif
