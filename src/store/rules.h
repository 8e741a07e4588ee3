/* SPDX-License-Identifier: MIT
 * Small decisions that store.h fixes and that every engine needs in the same words: which
 * error an existing thing is, what may stand where, what attributes do.  Private to the
 * store.  They are pure: no engine's state is seen here. */
#ifndef STORE_RULES_H
#define STORE_RULES_H

#include "store/store.h"

/* What item.flags may hold outside an engine. */
#define ITEM_FLAGS_PUBLIC 0xffu

/* Such as ERR_ENTITY_EXISTS; ERR_NAME_EXISTS for a kind that has no error of its own. */
enum err rules_exists(enum item_kind there);

/* Whether a child may stand in that directory, by its kind and class: item_may_hold(), and
 * accounts stand in STORE_ROOT and nothing else does; of folders, STORE_ORPHANS alone holds extents. */
bool rules_fits(const struct item *parent, const struct item *child, enum item_class class);

/* Whether items of this kind keep a body: a document, a text, secrets, policies. */
bool rules_has_body(enum item_kind kind);
/* Whether item.size is the length of the body. */
static inline bool rules_body_is_content(enum item_kind kind)
{
	return kind == ITEM_ROW || kind == ITEM_MESSAGE || kind == ITEM_PIECE;
}
/* Whether a reader that wants this (enum store_want) is given this item's. */
bool rules_wants_body(unsigned want, const struct item *it);

/* Whether a PUT replaces what is there: a document over a row; the body of a piece, or of a
 * directory that has one. */
bool rules_put_replaces(const struct change *put, const struct item *there);

/* c->cond against what is there (NULL: nothing). */
enum err rules_cond(const struct change *c, const struct item *there);

/* MOVE with to_match: the version of what stands at the target (NULL: nothing). */
enum err rules_to_match(const struct change *c, const struct item *there);

/* MOVE: whether `from` may become `to` (ITEM_NONE: unchanged), given whether a document
 * comes with it. */
enum err rules_convert(enum item_kind from, enum item_kind to, bool has_body);

/* The attributes of a row that a PUT replaces. */
struct attrs rules_attrs_replaced(const struct attrs *old, const struct attrs *given);
/* Those of an item that a MOVE carries away from its old version: mv keeps the mtime. */
struct attrs rules_attrs_moved(const struct item *it);
/* CHANGE_TO_FILE leaves the document where it is, but the file is another item than the row and
 * needs an id that nobody had: the row's with this bit, which no other way gives.  0: the row came
 * from such a file, so a fresh one. */
#define RULES_ID_LEFT (UINT64_C(1) << (STORE_ID_BITS - 1))
uint64_t rules_left_id(uint64_t row_id);
/* The file that a row leaves behind, without place. */
struct item rules_file_left(const struct item *row, const struct change *c);
/* CHANGE_ATTRS on *it. */
void rules_attrs_set(struct item *it, const struct change *c);

/* Kind, generation, flags and condition of an item that a MOVE converts to `kind`; body: whether a
 * document comes with it; flags: of that document. */
void rules_moved(struct item *it, enum item_kind kind, bool body, uint32_t flags);

/* CHANGE_WRITE and CHANGE_RESIZE: the size of the file afterwards.  ERR_IS_A_DIRECTORY,
 * ERR_INVALID_INPUT (not a file), ERR_FILE_TOO_LARGE. */
enum err rules_new_size(
	const struct change *c, const struct item *it, uint64_t limit, uint64_t *ret);

#endif
