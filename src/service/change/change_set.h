/* SPDX-License-Identifier: MIT
 * A change set as text, and its result as JSON, for the .batch files of the mount.  The text is a
 * JSON array of operations, JSON lines (codec/change_set_json.h), or the service's $batch body with
 * one change set (codec/multipart.h). */
#ifndef SERVICE_CHANGE_CHANGE_SET_H
#define SERVICE_CHANGE_CHANGE_SET_H

#include "base/arena.h"
#include "base/buf.h"
#include "service/change/entities.h"

/* The table that paths in a $batch body must name. */
struct change_set_place {
	struct span account, table;
	/* UTF-8.  The PartitionKey of all operations, which may omit it; p NULL: that of the first
	 * operation */
	struct span pk;
};

struct change_set {
	struct span text; /* borrowed; must outlive the set */
	size_t n;
	/* pk.p is NULL in messages, and in operations that were not read yet */
	struct entity_op *ops;
	struct change_set_item *items; /* further data of each operation */
	/* detail->op of the last error is the index of an operation */
	bool blames;
	struct arena arena;
};

/* Parses the text and checks what does not depend on the store.  Keeps no reference to *at.  detail
 * must not be NULL.  Call change_set_fini() also after an error.
 *
 * ERR_INCOMPLETE for the start of a change set.  JSON lines are complete behind an operation, a
 * $batch body at its closing delimiter.  ERR_INVALID_INPUT, ERR_BATCH_TOO_LARGE, and the errors of
 * an entity, with their position in the text. */
enum err change_set_parse(struct span text, const struct change_set_place *at,
	struct change_set *ret, struct err_detail *detail);
/* Frees the set, whatever change_set_parse() returned. */
void change_set_fini(struct change_set *set);

/* Applies the change set with the service's limits, all or nothing.  flags: enum entities_flags. */
enum err change_set_apply(struct service *s, enum origin origin, uint64_t table_id,
	struct change_set *set, unsigned flags, struct err_detail *detail);

/* Makes e the error of the operation detail->op, with its position in the text.  Returns e. */
enum err change_set_blame(struct change_set *set, enum err e, struct err_detail *detail);

/* Appends the result as one JSON object with a newline.  checked: nothing was to be committed.  e,
 * detail: of the step that failed, else ERR_OK.  "committed" is null if the outcome is unknown
 * (ERR_OUTCOME_UNKNOWN).  set may be zeroed. */
void change_set_result(const struct change_set *set, enum err e, const struct err_detail *detail,
	bool checked, struct buf *out);

#endif
