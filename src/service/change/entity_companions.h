/* SPDX-License-Identifier: MIT
 * Private to service/change/entities.c: a change set under construction, with its companion
 * changes.  Those concern what a mount left under the names of rows and partitions.  A folder under
 * the digest name of a new partition becomes that partition.  An empty file under the name of a
 * removed row (a draft) is removed with it. */
#ifndef SERVICE_CHANGE_ENTITY_COMPANIONS_H
#define SERVICE_CHANGE_ENTITY_COMPANIONS_H

#include "base/buf.h"
#include "model/limits.h"
#include "service/change/entities.h"

/* State of one operation while its change is built and applied. */
struct entity_work {
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES]; /* in order form */
	struct buf body;
	bool guarded; /* the precondition is rowfs's own: repeat after a lost race */
	/* The error of a merge, found before the operations in front of it were checked.  The
	 * merge then becomes a change that always fails, so that the first failing operation is
	 * blamed. */
	enum err pending;
	struct err_detail why;

	bool long_pk;   /* makes a row in a partition with a digest name */
	bool no_folder; /* no folder may have this name: */
	char name[LIMIT_NAME_BYTES + 1];
	size_t name_len;
};

/* The operations of a change set and its companion changes: folders that become partitions come
 * before them, checks and removals behind them. */
struct entity_set {
	struct entity_op *ops;
	struct entity_work *works;
	struct change *changes; /* before + n + behind of them */
	size_t before, n, behind;

	struct span draft_pk; /* the partition that was looked up last */
	uint64_t draft_dir;   /* 0: it does not exist */
};

/* Returns how many companion changes an operation can need. */
size_t companions_max(const struct entity_op *op);
/* Builds the companion changes in front, and sets `before`.  The operations' changes are built
 * later, behind them. */
enum err companions_before(struct service *s, uint64_t table_id, struct entity_set *set);
/* Builds the companion changes behind, and sets `behind`.  Call it after the operations' changes
 * are built. */
enum err companions_behind(struct service *s, uint64_t table_id, struct entity_set *set);
/* Appends a change, which the caller must fill. */
struct change *entity_set_behind(struct entity_set *set);

#endif
