/* SPDX-License-Identifier: MIT
 * The caller of a request, if modes bind it: on a mount with allow_other everybody but root.  The
 * kernel judges nodes by their modes.  Some nodes show or change several partitions (streams,
 * queries, .batch and imports of a table): those are judged here, by the same rule. */
#ifndef FS_TREE_REQUESTER_H
#define FS_TREE_REQUESTER_H

#include "base/span.h"
#include "service/query/queries.h"

#include <sys/types.h>

struct fs;

/* Where somebody has more, or their groups cannot be read, what may be any group's gives only
 * what it gives to the group and to others alike. */
#define REQUESTER_GROUPS 64

struct requester {
	struct query_requester base; /* first */
	const struct fs *fs;
	uid_t uid;
	gid_t gid;
	bool all_groups; /* they are all known */
	size_t ngroups;
	gid_t groups[REQUESTER_GROUPS];
};

/* Whether the mode of what has these attributes gives all of the bits (4 read, 2 write, 1 go
 * through). */
bool requester_may(const struct requester *v, const struct attrs *attrs, bool dir, unsigned bits);
/* Rows and partitions that it may not read do not exist for its queries.  tid: of the thread that
 * asks, whose other groups count. */
void requester_init(struct requester *v, const struct fs *fs, uid_t uid, gid_t gid, pid_t tid);
/* Whether both may do the same. */
bool requester_same(const struct requester *a, const struct requester *b);
/* Whether rows of the partition may be made, replaced and removed.  Every caller that got this far
 * may make a partition that is not there.  v NULL: everybody.  ERR_ACCESS. */
enum err requester_may_change(const struct requester *v, uint64_t table_id, struct span pk);

#endif
