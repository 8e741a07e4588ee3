/* SPDX-License-Identifier: MIT
 * What a name in a directory means, for the mount and for the commands: path components become keys
 * (with model/filename.h), and items become path components. */
#ifndef SERVICE_TREE_NAMES_H
#define SERVICE_TREE_NAMES_H

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
	uint64_t control; /* the mount alone sets it: nid of a control entry; else 0 */
};

void resolved_name_fini(struct resolved_name *t);

/* Finds out what `name` in a directory means; nothing needs to exist there.  Takes ownership of *dir,
 * also on failure.  A directory with id 0 is one that does not exist yet.
 * ERR_NOT_A_DIRECTORY.  Names that mean nothing: ERR_NAME_INVALID, ERR_NAME_NOT_UTF8,
 * ERR_NAME_TOO_SHORT, ERR_NAME_TOO_LONG, ERR_KEY_INVALID, ERR_KEY_TOO_LARGE. */
enum err name_in_item(struct store *store, struct store_view *view, struct item *dir,
	struct span name, struct resolved_name *ret, struct err_detail *detail);
/* Whether these say that nothing can be there under the name: a look-up gets ENOENT. */
bool name_means_nothing(enum err e);
/* Whether ordinary files and folders, and rows, can be made in its directory: partitions
 * and the folders in them, not the mount's own. */
bool name_may_hold_files(const struct resolved_name *t);
/* Whether a row's name tells its key.  Else an ordinary file waits there for the document. */
bool name_tells_key(const struct resolved_name *t);
/* Returns the item that stands there.  Under a row's name without a key: the empty ordinary file that
 * waits for its document.  ERR_NOT_FOUND. */
enum err resolved_name_item(
	struct store *store, const struct resolved_name *t, unsigned want, struct item *ret);
/* Searches the key of a digest name once more: somebody may have made it since.  t->digest says
 * whether it is still unknown. */
enum err resolved_name_search(struct store *store, struct resolved_name *t);
/* Returns the dentry for service/tree/tree.h; borrows from t.  kind: of what stands or shall stand
 * there, since a row's name may hold an ordinary file.  origin: who changes it. */
struct dentry resolved_name_dentry(
	const struct resolved_name *t, enum item_kind kind, enum origin origin);

/* Takes the key of a digest name from a document that holds it.  ERR_KEY_MISSING,
 * ERR_KEY_MISMATCH. */
enum err resolved_name_learn(
	struct resolved_name *t, struct span document, struct err_detail *detail);

struct row_keys {
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES]; /* UTF-8 */
	size_t pk_n, rk_n;
};
/* Fills in the row's keys, from the names or, where these are digests, from the document. */
enum err resolved_name_keys(struct resolved_name *t, struct span document, struct row_keys *k,
	struct err_detail *detail);

/* Writes an item's path component, with a NUL; returns its length. */
#define COMPONENT_MAX (LIMIT_FILE_NAME_BYTES + 1)
size_t item_component(const struct item *it, char out[COMPONENT_MAX]);

/* Whether it waits for its document under a row's name: an empty row, or an empty ordinary file
 * whose name does not tell its key. */
bool item_waits_for_document(struct store *store, const struct item *it);
/* Whether a folder in a table waits for its key. */
bool item_waits_for_key(struct store *store, struct store_view *view, const struct item *it);

#endif
