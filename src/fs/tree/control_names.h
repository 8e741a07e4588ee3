/* SPDX-License-Identifier: MIT
 * The names of the control files of accounts, tables and partitions: .batch, .query and the like.
 * A look-up finds them; a listing shows them on wish (control=list), and one that holds items while
 * it has some.  What they do is in fs/virtual/dir_control.h, fs/query/tree.h and fs/queue/tree.h. */
#ifndef FS_TREE_CONTROL_NAMES_H
#define FS_TREE_CONTROL_NAMES_H

#include "base/span.h"
#include "fs/core/nid.h"
#include "store/store.h"

#include <stdbool.h>
#include <sys/types.h>

/* The node of the control file `name` of this directory; 0: it has none of that name. */
uint64_t dir_control_find(const struct item *dir, struct span name);
/* The index-th name in directories of this kind; false at the end.  *ret_holds: the class of children
 * that it shows; CLASS_KEYED: none. */
bool dir_control_entry(enum item_kind kind, size_t index, const char **ret_name,
	enum dir_control *ret_which, enum item_class *ret_holds);
/* The name of a control file's node; "" if it is none. */
struct span dir_control_name(uint64_t nid);
/* Its type and the permissions that it can have at most; 0 if it is none. */
mode_t dir_control_mode(uint64_t nid);

#endif
