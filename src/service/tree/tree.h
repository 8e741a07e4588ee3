/* SPDX-License-Identifier: MIT
 * The tree as files need it: directories, ordinary files, removal, renames, attributes.  Names are
 * keys here; front ends convert them with model/filename.h. */
#ifndef SERVICE_TREE_TREE_H
#define SERVICE_TREE_TREE_H

#include "service/change/entities.h"

/* A dentry: a child's name in a directory, whether or not it exists. */
struct dentry {
	const struct item *dir;
	enum item_class class;
	struct span key;    /* order form (CLASS_KEYED), or the bytes of the name */
	struct span name;   /* tables: the name in its case */
	enum origin origin; /* who changes it */
};

/* Makes an account, table, partition or folder, by the kind of dir and the class. */
enum err tree_mkdir(struct service *s, const struct dentry *at, const struct attrs *attrs,
	struct item *ret, struct err_detail *detail);
/* Removes an empty directory.  ERR_NOT_EMPTY, ERR_NOT_FOUND. */
enum err tree_rmdir(struct service *s, const struct dentry *at, struct err_detail *detail);
/* Removes a directory with all below it, durably.  ERR_NOT_FOUND. */
enum err tree_remove(struct service *s, const struct dentry *at, struct err_detail *detail);
/* Removes a row or an ordinary file.  ret_gone, if not NULL, is the old item with its body. */
enum err tree_unlink(struct service *s, const struct dentry *at, struct item *ret_gone,
	struct err_detail *detail);
/* Makes an empty ordinary file; under a key an empty row.  ERR_NAME_EXISTS, ERR_ENTITY_EXISTS. */
enum err tree_create_file(struct service *s, const struct dentry *at, const struct attrs *attrs,
	struct item *ret, struct err_detail *detail);

/* Hides an ordinary file while it is open; tree_drop() removes it.  Removes it at once if the
 * engine lacks STORE_CAN_SPAN: its readers then get ERR_NOT_FOUND. */
enum err tree_orphan(struct service *s, const struct dentry *at, struct err_detail *detail);
enum err tree_drop(struct service *s, uint64_t id);
/* Removes the hidden files that a killed process left. */
enum err tree_drop_orphans(struct service *s);

enum tree_move_flags {
	TREE_NO_REPLACE = 1,
	TREE_EXCHANGE = 2,
	TREE_KEEP_REPLACED = 4, /* an ordinary file that is replaced is hidden */
};
/* rename(2) in one transaction, with all conversions: row to row (a document with keys is encoded
 * again); file to row (the content must be an entity, else ERR_NOT_AN_ENTITY; or empty, where no
 * document is replaced); row to file;
 * partitions, tables, accounts and folders.  A file becomes a row only if its attrs.if_match holds
 * (ERR_CONDITION_NOT_MET).  The results may be NULL. */
enum err tree_move(struct service *s, const struct dentry *from, const struct dentry *to,
	unsigned flags, struct item *ret_now, struct item *ret_replaced, struct err_detail *detail);

/* Sets the members of *attrs that mask (enum attrs_mask) names.  Updates ctime. */
enum err tree_set_attrs(
	struct service *s, uint64_t id, const struct attrs *attrs, uint32_t mask, struct item *ret);

/* Write to an ordinary file, which grows as needed, and set its size, both in bytes. */
enum err tree_file_write(
	struct service *s, uint64_t id, uint64_t offset, struct span bytes, struct item *ret);
enum err tree_file_resize(struct service *s, uint64_t id, uint64_t size, struct item *ret);
/* Reads the whole content.  ERR_NOT_AN_ENTITY if it is larger than a document can be. */
enum err tree_file_content(struct service *s, const struct item *file, struct buf *out);

#endif
