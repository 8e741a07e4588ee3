/* SPDX-License-Identifier: MIT
 * What a name in a directory of the mount means: the one place where path components
 * become keys (with model/filename.h) and items become path components. */
#ifndef FS_TREE_NAMES_H
#define FS_TREE_NAMES_H

#include "fs/core/state.h"
#include "model/filename.h"
#include "service/tree/tree.h"

#include <stdbool.h>

struct resolved_name {
	struct store_view *view; /* the moment that is meant; NULL: now.  Borrowed */
	struct item dir;         /* the directory; owned */
	enum item_class class;
	char key[LIMIT_KEY_BYTES + 1]; /* order form, or the name's bytes */
	size_t key_len;
	struct span name; /* the component itself, borrowed from the caller */
	bool row_name;    /* names a row: *.json in a partition */
	bool digest;      /* a digest name whose key nobody knows yet: key_len is 0 */
	bool pending_dir; /* dir was made under a digest name and has no key yet */
	uint64_t control; /* nid of a control entry; else 0 */
};

void resolved_name_fini(struct resolved_name *t);

/* Finds out what `name` in directory parent_nid means; nothing needs to exist there but the
 * directory.  Names that mean nothing: ERR_NAME_INVALID, ERR_KEY_INVALID,
 * ERR_KEY_TOO_LARGE, ERR_NAME_TOO_LONG, ERR_NAME_NOT_UTF8.  ERR_GONE where the directory
 * is no more. */
enum err name_resolve(struct fs *fs, uint64_t parent_nid, const char *name,
	struct resolved_name *ret, struct err_detail *detail);
/* The same in a view, where there are no control entries; dir_id: of the item. */
enum err name_resolve_in(struct fs *fs, struct store_view *view, uint64_t dir_id, const char *name,
	struct resolved_name *ret, struct err_detail *detail);
/* Whether these say that nothing can be there under the name: a look-up gets ENOENT. */
bool name_means_nothing(enum err e);
/* Whether ordinary files and folders, and rows, can be made in its directory: partitions
 * and the folders in them, not the mount's own. */
bool name_may_hold_files(const struct resolved_name *t);
/* The item that stands there.  Under a row's name without a key: the empty ordinary file that waits
 * for its document.  ERR_NOT_FOUND. */
enum err name_item(struct fs *fs, const struct resolved_name *t, unsigned want, struct item *ret);
/* Searches the key of a digest name once more: somebody may have made it since name_resolve().
 * t->digest says whether it is still unknown. */
enum err name_find_digest(struct fs *fs, struct resolved_name *t);
/* The dentry for service/tree/tree.h; borrows from t.  kind: of what stands or shall stand there,
 * since a row's name may hold an ordinary file. */
struct dentry name_dentry(const struct resolved_name *t, enum item_kind kind);

/* The key of a digest name, taken from a document that holds it.  ERR_KEY_MISSING,
 * ERR_KEY_MISMATCH. */
enum err name_key_from_document(
	struct fs *fs, struct resolved_name *t, struct span document, struct err_detail *detail);

/* An item's path component, with a NUL; returns its length. */
#define COMPONENT_MAX (LIMIT_FILE_NAME_BYTES + 1)
size_t item_component(const struct item *it, char out[COMPONENT_MAX]);

/* The path of a name below the mount point, for people: "acct/Table/pk/row.json". */
#define SHOWN_PATH_MAX 1200
void name_path(struct fs *fs, uint64_t dir_id, struct span name, char out[SHOWN_PATH_MAX]);

/* Whether it waits for its document under a row's name: an empty row, or an empty ordinary file
 * whose name does not tell its key. */
bool item_is_waiting(struct fs *fs, const struct item *it);
/* Whether a row's name tells its key.  Else an ordinary file waits there for the document. */
bool name_tells_key(const struct resolved_name *t);
/* Whether a folder in a table waits for its key. */
bool item_is_pending_partition(struct fs *fs, struct store_view *view, const struct item *it);

#endif
