/* SPDX-License-Identifier: MIT
 * The steps that every change of a plan (plan.h) is made of: finding an item by its place, and
 * checking and counting what a change does to its directory.  Private to plan.c and plan_move.c.
 * Errors are those of store.h; an item is a borrowed copy unless said otherwise. */
#ifndef STORE_PLAN_STEPS_H
#define STORE_PLAN_STEPS_H

#include "store/plan.h"

#define NO_BODY ((struct span){ NULL, 0 })

/* The place that a struct item_ref names. */
struct plan_place {
	struct item it; /* a copy for item_fini(); kind is ITEM_NONE if there is nothing */
	uint64_t parent;
	enum item_class class;
	struct span key;
	bool made; /* its partition was made for it */
};

/* Returns whether an item is at the place. */
bool plan_found(const struct plan_place *at);
/* Returns NULL if there is no such item, or it could not be read (w->failed). */
struct node *plan_by_id(struct plan *w, uint64_t id);
/* Finds what `at` names.  If `make`, a missing partition is made.  ERR_GONE: no item has the id. */
enum err plan_find(struct plan *w, const struct item_ref *at, bool make, int64_t version,
	struct plan_place *ret);

/* Checks that the change stays in the directory of the set's first one, if the engine cannot span
 * several.  A partition that went and came back in between has another id and is the same one. */
enum err plan_stay_inside(struct plan *w, uint64_t dir);
/* Checks that the directory may contain such a child. */
enum err plan_check_fit(
	struct plan *w, uint64_t parent, const struct item *child, enum item_class class);
/* Checks that the change is newer than the item, or that the item is of the same set. */
enum err plan_check_version(struct plan *w, const struct change *c, const struct item *it);

/* Inserts *it with a new id. */
enum err plan_insert(struct plan *w, struct item *it, int64_t version);
/* Sets a directory's times and version, and adds delta to the number of its children. */
enum err plan_touch(struct plan *w, uint64_t dir, int64_t version, int delta);
/* Counts a child less.  An implicit partition without children is removed, or noted for
 * plan_end(). */
enum err plan_child_gone(struct plan *w, uint64_t parent, struct change *c);
/* Removes an empty directory and reports it in c->left. */
enum err plan_remove_empty(struct plan *w, uint64_t id, struct change *c);
/* Counts that a file of `from` bytes has `to`.  ERR_QUOTA. */
enum err plan_grow_files(struct plan *w, uint64_t from, uint64_t to);
/* The same for the pieces of blobs.  ERR_BLOB_SPACE. */
enum err plan_grow_pieces(struct plan *w, uint64_t from, uint64_t to);

/* Copies an item into a change's result, with its body or without. */
enum err plan_give(struct item *to, const struct item *from, bool body);
/* Copies the item that the change replaces, if the caller wants it. */
enum err plan_give_old(struct change *c, const struct item *it);

#endif
