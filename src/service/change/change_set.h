/* SPDX-License-Identifier: MIT
 * A change set as a text, and its outcome as one: what the .batch files of the mount take and
 * give.  The text is a JSON array of operations, JSON lines (codec/change_set_json.h), or the
 * service's own $batch body with one change set (codec/multipart.h). */
#ifndef SERVICE_CHANGE_CHANGE_SET_H
#define SERVICE_CHANGE_CHANGE_SET_H

#include "base/arena.h"
#include "base/buf.h"
#include "service/change/entities.h"

/* Whose change set it is: paths in a $batch body must name this table. */
struct change_set_place {
	struct span account, table;
	struct span pk; /* UTF-8: that of all operations, which may leave it out; p NULL: the
			   first operation's, likewise */
};

struct change_set {
	struct span text; /* borrowed; must outlive the set */
	size_t n;
	struct entity_op *ops;         /* pk.p is NULL in those not read yet */
	struct change_set_item *items; /* what belongs to each */
	bool blames;                   /* detail->op of the last error is an operation's index */
	struct arena arena;
};

/* Reads the text and checks what does not depend on the store; *at is not needed afterwards.
 * ERR_INCOMPLETE: the beginning of a change set (JSON lines that end behind an operation, and a
 * $batch body with its closing delimiter, are whole); ERR_INVALID_INPUT, ERR_BATCH_TOO_LARGE,
 * and the errors of a single entity, with their place in the text.  detail must not be NULL
 * here.  change_set_fini() whatever the answer. */
enum err change_set_parse(struct span text, const struct change_set_place *at,
	struct change_set *ret, struct err_detail *detail);
void change_set_fini(struct change_set *set);

/* Applies what was parsed, all or nothing, with the service's limits.  flags: enum
 * entities_flags. */
enum err change_set_apply(struct service *s, enum origin origin, uint64_t table_id,
	struct change_set *set, unsigned flags, struct err_detail *detail);

/* The outcome as one JSON object with a final newline.  checked: nothing was to be kept.  e,
 * detail: of the step that failed, else ERR_OK; where nobody knows whether it was committed
 * (ERR_OUTCOME_UNKNOWN), "committed" is null.  set may be zeroed. */
void change_set_result(const struct change_set *set, enum err e, const struct err_detail *detail,
	bool checked, struct buf *out);

#endif
