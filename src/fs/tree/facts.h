/* SPDX-License-Identifier: MIT
 * What an item alone tells of itself as an extended attribute: ETag, Timestamp and keys, by the
 * names behind "user.rowfs.".  A new one is a row in the table in facts.c. */
#ifndef FS_TREE_FACTS_H
#define FS_TREE_FACTS_H

#include "base/buf.h"
#include "fs/core/state.h"

#include <stdbool.h>

bool fact_is_known(const char *name);
/* Whether it tells which version of the row it is about. */
bool fact_is_of_version(const char *name);
/* Of the item, as it is in the view (NULL: now); appended to out.  ERR_NO_ATTRIBUTE. */
enum err fact_get(struct fs *fs, struct store_view *view, const struct item *it, const char *name,
	struct buf *out);

/* The reason of ERR_CONDITION_NOT_MET, in user.rowfs.error. */
#define MATCH_NOT_MET_TEXT \
	"the row is not as user.rowfs.if_match says: read it again, and set its new ETag"

#endif
