/* SPDX-License-Identifier: MIT
 * A tree at one moment, or the part of it that is looked at: a sorted array of items that never
 * change.  A change makes a new array; a reader or a view keeps the one it has. */
#ifndef STORE_STATE_H
#define STORE_STATE_H

#include "store/store.h"

#include <stdatomic.h>

struct node {
	atomic_uint refs;
	struct item it; /* with body; owns its memory */
	char *data;     /* ordinary files: it.size bytes */
};

struct state {
	atomic_uint refs;
	struct node **v; /* by parent, class, key */
	size_t n, cap;
};

/* A copy that may be changed; shares the nodes. */
enum err state_copy(const struct state *from, struct state **ret);
struct state *state_ref(struct state *s);
void state_unref(struct state *s); /* NULL is fine */

/* Index of the first child of this class whose key is not below `key`. */
size_t state_seek(const struct state *s, uint64_t parent, enum item_class class, struct span key);
/* NULL if there is none; borrowed. */
struct node *state_child(
	const struct state *s, uint64_t parent, enum item_class class, struct span key);
struct node *state_by_id(const struct state *s, uint64_t id);

/* Returns the sum of the sizes of all items of a kind. */
uint64_t state_bytes(const struct state *s, enum item_kind kind);

/* Puts a copy of *it there; data (malloc'd, may be NULL) is taken over in every case.
 * There must be nothing. */
enum err state_insert(struct state *s, const struct item *it, char *data);
/* Puts a node of another state there; the two share it. */
enum err state_share(struct state *s, struct node *n);
/* Takes the item with this id away. */
void state_remove(struct state *s, uint64_t id);
/* Takes away all that is below it. */
void state_remove_below(struct state *s, uint64_t id);
/* Both: the item with it->id becomes *it.  data as in state_insert(); NULL: as it was. */
enum err state_replace(struct state *s, const struct item *it, char *data);

#endif
