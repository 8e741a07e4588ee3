/* SPDX-License-Identifier: MIT
 * The tree as files need it: directories, ordinary files, removal, renames, attributes.
 * Names arrive as keys (codec/filename.h is the door's business). */
#ifndef SERVICE_TREE_TREE_H
#define SERVICE_TREE_TREE_H

#include "service/change/entities.h"

/* Where something is or shall be: a child of a directory item. */
struct spot {
	const struct item *dir;
	enum item_class class;
	struct span key;  /* order form (CLASS_KEYED) or name bytes */
	struct span name; /* tables: the name in its case; rows: the name under which an empty
			     file may wait behind the row, which goes with it */
};

/* Makes an account, table, partition or folder (by the kind of dir and the class). */
enum err tree_mkdir(struct service *s, const struct spot *at, const struct attrs *attrs,
	struct item *ret, struct err_detail *detail);
/* ERR_NOT_EMPTY, ERR_NOT_FOUND. */
enum err tree_rmdir(struct service *s, const struct spot *at, struct err_detail *detail);
/* A row or an ordinary file.  ret_gone, if not NULL, is the item as it was, with body. */
enum err tree_unlink(
	struct service *s, const struct spot *at, struct item *ret_gone, struct err_detail *detail);
/* For change sets that remove the row at a spot: the removal of the empty file that waits
 * under its name, if there is one (made before another door made the row).  Fills *c; returns
 * 1 or 0. */
size_t tree_draft_removal(struct service *s, const struct spot *at, struct change *c);
/* An empty ordinary file (also under a row's name: a draft). */
enum err tree_create_file(struct service *s, const struct spot *at, const struct attrs *attrs,
	struct item *ret, struct err_detail *detail);

/* Takes an ordinary file out of sight while it is open; tree_drop() removes it for good.  Without
 * STORE_CAN_SPAN it is removed at once: who has it open gets ERR_NOT_FOUND from then on. */
enum err tree_orphan(struct service *s, const struct spot *at, struct err_detail *detail);
enum err tree_drop(struct service *s, uint64_t id);
/* Removes what a process that was killed left out of sight. */
enum err tree_drop_orphans(struct service *s);

enum tree_move_flags {
	TREE_NO_REPLACE = 1,
	TREE_EXCHANGE = 2,
	TREE_KEEP_REPLACED = 4, /* an ordinary file that is replaced becomes an orphan */
};
/* rename(2) in one transaction, with every conversion: row -> row (a document that holds
 * keys is rendered anew), file -> row (the content must be an entity: ERR_NOT_AN_ENTITY),
 * row -> file, partition, table, account, folder.  A file that becomes a row does so only where
 * its attrs.if_match holds (ERR_CONDITION_NOT_MET).  Results may be NULL. */
enum err tree_move(struct service *s, const struct spot *from, const struct spot *to,
	unsigned flags, struct item *ret_now, struct item *ret_replaced, struct err_detail *detail);

/* An empty ordinary file goes to a row's name, where it waits for its document, in the place
 * of another one that waits there.  It gets a new id: who has it still open for writing gets
 * ERR_GONE from then on, as where a file becomes a row.  to: CLASS_NAMED.  ERR_GONE also
 * where one of the two is not empty any more.  ERR_CONDITION_NOT_MET: the file's attrs.if_match asks
 * for a row. */
enum err tree_move_empty(struct service *s, const struct spot *from, const struct spot *to,
	struct item *ret_now, struct err_detail *detail);

/* A directory that was made in a table under a digest name becomes the partition pk_order
 * once a document told its key. */
enum err tree_adopt(struct service *s, const struct item *folder, struct span pk_order,
	struct item *ret, struct err_detail *detail);

/* Attributes: the members of *attrs that mask (enum attrs_mask) names; ctime moves. */
enum err tree_set_attrs(
	struct service *s, uint64_t id, const struct attrs *attrs, uint32_t mask, struct item *ret);

enum err tree_file_write(
	struct service *s, uint64_t id, uint64_t offset, struct span bytes, struct item *ret);
enum err tree_file_resize(struct service *s, uint64_t id, uint64_t size, struct item *ret);
/* The whole content; ERR_NOT_AN_ENTITY where it is larger than a document may be. */
enum err tree_file_content(struct service *s, const struct item *file, struct buf *out);

#endif
