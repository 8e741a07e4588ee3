/* SPDX-License-Identifier: MIT
 * Private to service/change/entities.c: a change set under construction, and what a mount left under
 * the digest names of its rows and partitions (service/change/adoption.h).  That is adopted before
 * the set is applied, unless the set is refused.  Companion changes behind the set make sure that no folder comes meanwhile. */
#ifndef SERVICE_CHANGE_ENTITY_COMPANIONS_H
#define SERVICE_CHANGE_ENTITY_COMPANIONS_H

#include "base/buf.h"
#include "model/limits.h"
#include "service/change/entities.h"
#include "service/queue/messages.h"

/* State of one operation while its change is built and applied. */
struct entity_work {
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES]; /* in order form */
	struct buf body;
	struct prepared_message message;
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

/* The operations of a change set and the companion changes behind them. */
struct entity_set {
	struct entity_op *ops;
	struct entity_work *works;
	struct change *changes; /* n + behind of them */
	size_t n, behind;
	bool waits; /* something is there to adopt */
};

/* Returns how many companion changes an operation can need. */
size_t companions_max(const struct entity_op *op);
/* Looks for folders and empty files to adopt, and finds out which changes must come behind. */
enum err companions_look(struct service *s, uint64_t table_id, struct entity_set *set);
/* Adopts them, once the set is known to be applicable.  ERR_GONE: begin again, also if all went well. */
enum err companions_adopt(
	struct service *s, enum origin origin, uint64_t table_id, struct entity_set *set);
/* Adds the changes behind. */
void companions_behind(uint64_t table_id, struct entity_set *set);
/* Appends a change, which the caller must fill. */
struct change *entity_set_behind(struct entity_set *set);

#endif
