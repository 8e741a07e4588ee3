/* SPDX-License-Identifier: MIT
 * Names that users choose for messages.  A message has its id for a name.  A file that a program
 * makes in a queue has the name that the program gave it, and so has a message that is moved to
 * .taken.  The mount remembers the last of these names, so that the program finds its file again.
 * They are not listed.
 *
 * A name says which take it is about: after another take, changes by the name are refused.
 *
 * A name with a leading dot is not put: its text waits here, in memory, for a rename to another
 * name. */
#ifndef FS_QUEUE_NAMES_H
#define FS_QUEUE_NAMES_H

#include "base/buf.h"
#include "base/span.h"
#include "fs/queue/nodes.h"
#include "model/limits.h"

#include <stdbool.h>

struct queue_name {
	uint64_t queue;
	enum queue_place place;
	char name[LIMIT_FILE_NAME_BYTES + 1];
	uint64_t item;  /* the message; 0: it is not put yet */
	uint32_t taken; /* how often it had been taken then */
	uint64_t size;  /* of what is not put yet */
	int64_t made;   /* ticks */
};

struct queue_names;
/* NULL: no memory. */
struct queue_names *queue_names_new(void);
void queue_names_free(struct queue_names *t); /* accepts NULL */

/* Adds a name, in place of one that is the same.  Returns its number; 0: no memory. */
uint64_t queue_names_add(struct queue_names *t, const struct queue_name *n);
/* Find a copy of a name.  Return false if it is not known. */
bool queue_names_find(struct queue_names *t, uint64_t queue, enum queue_place place,
	struct span name, uint64_t *ret_number, struct queue_name *ret);
bool queue_names_get(struct queue_names *t, uint64_t number, struct queue_name *ret);
/* Replaces what is known of the number, if it is still known. */
void queue_names_set(struct queue_names *t, uint64_t number, const struct queue_name *n);
void queue_names_drop(struct queue_names *t, uint64_t number);

/* Sets the text of one that is not put yet; takes *text over.  ERR_NO_MEMORY: too many wait. */
enum err queue_names_keep(struct queue_names *t, uint64_t number, struct buf *text);
/* Whether a text was set, and no message was made of it. */
bool queue_names_waits(struct queue_names *t, uint64_t number);
/* Appends that text. */
enum err queue_names_text(struct queue_names *t, uint64_t number, struct buf *out);
/* While a file is open by the number, the number is not forgotten. */
void queue_names_open(struct queue_names *t, uint64_t number, bool open);

#endif
