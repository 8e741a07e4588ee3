/* SPDX-License-Identifier: MIT
 * The names of the mount: those of service/tree/names.h and the control entries. */
#ifndef FS_TREE_NAMES_H
#define FS_TREE_NAMES_H

#include "fs/core/state.h"
#include "service/tree/names.h"

/* Finds out what `name` in directory parent_nid means; see name_in_item().  ERR_GONE where the
 * directory is no more. */
enum err name_resolve(struct fs *fs, uint64_t parent_nid, const char *name,
	struct resolved_name *ret, struct err_detail *detail);
/* The same in a view, where there are no control entries; dir_id: of the item. */
enum err name_resolve_in(struct fs *fs, struct store_view *view, uint64_t dir_id, const char *name,
	struct resolved_name *ret, struct err_detail *detail);

/* The path of a name below the mount point, for people: "acct/Table/pk/row.json". */
#define SHOWN_PATH_MAX 1200
void name_path(struct fs *fs, uint64_t dir_id, struct span name, char out[SHOWN_PATH_MAX]);

/* The same as in service/tree/names.h, of this mount. */
static inline enum err name_item(
	struct fs *fs, const struct resolved_name *t, unsigned want, struct item *ret)
{
	return resolved_name_item(fs->store, t, want, ret);
}

static inline enum err name_find_digest(struct fs *fs, struct resolved_name *t)
{
	return resolved_name_search(fs->store, t);
}

static inline struct dentry name_dentry(const struct resolved_name *t, enum item_kind kind)
{
	return resolved_name_dentry(t, kind, ORIGIN_MOUNT);
}

static inline bool item_is_waiting(struct fs *fs, const struct item *it)
{
	return item_waits_for_document(fs->store, it);
}

static inline bool item_is_pending_partition(
	struct fs *fs, struct store_view *view, const struct item *it)
{
	return item_waits_for_key(fs->store, view, it);
}

#endif
