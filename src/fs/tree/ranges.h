/* SPDX-License-Identifier: MIT
 * The byte ranges of one file that are locked, with the rules of fcntl(2): an owner's ranges are
 * split, merged, upgraded and downgraded by what it sets over them.  Not thread-safe. */
#ifndef FS_TREE_RANGES_H
#define FS_TREE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The end of the longest range: all that off_t can count. */
#define RANGE_END ((uint64_t)INT64_MAX)

enum range_type {
	RANGE_FREE,
	RANGE_SHARED,
	RANGE_EXCLUSIVE
};

/* The holdings of one user, for the limits (locks.c). */
struct range_user {
	struct range_user *next;
	uid_t uid;
	bool first; /* may use the last quarter (open_quota.h) */
	size_t n;
	size_t *all; /* of all users together */
};

struct ranges {
	/* In no order.  Those of one owner do not overlap, nor touch if type and open file are the same. */
	struct range *first;
};

struct range {
	struct range *next, **at;         /* of the file */
	struct range *via_next, **via_at; /* of those that were set through one open file */
	struct range **via;               /* the list of these */
	struct ranges *of;
	struct range_user *user; /* NULL: not counted */
	uint64_t owner;
	uint64_t begin, last; /* inclusive; at most RANGE_END */
	enum range_type type;
	pid_t pid; /* of the process that set it; 0: not known */
};

/* Whether the one keeps another owner from setting the other. */
bool range_forbids(const struct range *r, const struct range *wanted);
/* Returns the range of another owner that begins first of those that forbid this one; NULL: none. */
const struct range *ranges_conflict(const struct ranges *s, const struct range *wanted);
/* Returns how many more ranges there will be after ranges_set(); may be negative. */
int ranges_growth(const struct ranges *s, const struct range *wanted);
/* Makes begin to last of the wanted owner what its type says, whatever others hold; RANGE_FREE unlocks.
 * Uses of *wanted: user, owner, begin, last, type, pid, via.  Returns false without memory; nothing is
 * changed then. */
bool ranges_set(struct ranges *s, const struct range *wanted);
/* Removes and frees one range. */
void range_drop(struct range *r);

#endif
