/* SPDX-License-Identifier: MIT
 * Private to service/change/entities.c: a change set while it is built, and what a mount left under
 * the names of its rows and partitions, which changes in the same step.  A directory under the
 * digest name of a partition to be becomes that partition; an empty file (a draft) under the
 * name of a row that goes, goes with it. */
#ifndef SERVICE_CHANGE_ENTITY_COMPANIONS_H
#define SERVICE_CHANGE_ENTITY_COMPANIONS_H

#include "base/buf.h"
#include "model/limits.h"
#include "service/change/entities.h"

/* What one operation needs while its change is built and applied. */
struct entity_work {
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES]; /* order form */
	struct buf body;
	bool guarded; /* the condition is ours: a lost race means once more, not failure */
	/* What is wrong with a merge, found before the operations in front of it were judged.
	 * Its change is made one that no row allows, so that the first operation that fails is
	 * the one to blame. */
	enum err pending;
	struct err_detail why;

	bool long_pk;   /* makes a row in a partition whose name takes the digest form */
	bool no_folder; /* on condition that no folder has that name: */
	char name[LIMIT_NAME_BYTES + 1];
	size_t name_len;
};

/* The operations, and what goes with them in the same step: before them the folders that
 * become their partitions, behind them what must hold or go at the end. */
struct entity_set {
	struct entity_op *ops;
	struct entity_work *works;
	struct change *changes; /* before + n + behind of them */
	size_t before, n, behind;

	struct span draft_pk; /* the partition that was looked into last */
	uint64_t draft_dir;   /* 0: there is none */
};

/* How many changes beside its own an operation may bring. */
size_t companions_max(const struct entity_op *op);
/* Sets `before` and its changes: those of the operations begin behind them, and are built
 * afterwards. */
enum err companions_before(struct service *s, uint64_t table_id, struct entity_set *set);
/* Sets `behind` and its changes, once those of the operations are built. */
enum err companions_behind(struct service *s, uint64_t table_id, struct entity_set *set);
/* One more change behind all others, to be filled. */
struct change *entity_set_behind(struct entity_set *set);

#endif
