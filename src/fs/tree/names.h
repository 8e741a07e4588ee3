/* SPDX-License-Identifier: MIT
 * The names of the mount: those of service/tree/names.h and the control entries. */
#ifndef FS_TREE_NAMES_H
#define FS_TREE_NAMES_H

#include "service/tree/names.h"

/* Finds out what `name` in directory parent_nid means; see name_in_item().  ERR_GONE where the
 * directory is no more. */
enum err name_resolve(struct store *store, uint64_t parent_nid, const char *name,
	struct resolved_name *ret, struct err_detail *detail);
/* The same in a view, where there are no control entries; dir_id: of the item. */
enum err name_resolve_in(struct store *store, struct store_view *view, uint64_t dir_id,
	const char *name, struct resolved_name *ret, struct err_detail *detail);

#define SHOWN_PATH_MAX 1200
/* Writes the path of a name below the mount point, for people: "acct/Table/pk/row.json". */
void name_path(struct store *store, uint64_t dir_id, struct span name, char out[SHOWN_PATH_MAX]);

static inline struct dentry name_dentry(const struct resolved_name *t, enum item_kind kind)
{
	return resolved_name_dentry(t, kind, ORIGIN_MOUNT);
}

#endif
