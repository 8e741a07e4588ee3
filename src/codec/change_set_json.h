/* SPDX-License-Identifier: MIT
 * A change set as JSON: an array of operations, or the operations one after another (JSON
 * lines).  An operation is an object: one of insert, upsert, merge, replace, upsert_merge,
 * delete with an entity, and maybe "if_match", in either order.  What an entity may hold is
 * codec/entity_json.h's business; here it is found, with its place.  Not jansson's: a row must
 * reach entity_json.h byte for byte, and an error must name the place of its value. */
#ifndef CODEC_CHANGE_SET_JSON_H
#define CODEC_CHANGE_SET_JSON_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"

#include <stddef.h>

enum change_verb {
	CHANGE_VERB_DELETE,
	CHANGE_VERB_INSERT,
	CHANGE_VERB_MERGE,
	CHANGE_VERB_REPLACE,
	CHANGE_VERB_UPSERT,
	CHANGE_VERB_UPSERT_MERGE,
	CHANGE_VERB_COUNT_
};

/* As operations spell it: "upsert_merge". */
const char *change_verb_text(enum change_verb v);

struct change_set_json_op {
	enum change_verb verb;
	struct span entity;     /* the object as it stands in the text, braces included */
	struct span if_match;   /* p NULL: none */
	size_t offset;          /* of the operation's opening brace */
	size_t if_match_offset; /* of its value */
};

struct change_set_json {
	struct change_set_json_op *ops;
	size_t n;
};

/* One pass; spans borrow from text or live in the arena, whose use is in proportion to the
 * text.  ret->ops are those read before the error, too, and detail->op is the index of the one
 * in which it is.  ERR_INCOMPLETE: a valid beginning, also an empty one (JSON lines that end
 * behind an operation are complete); ERR_INVALID_INPUT with the place of the first byte or
 * member that is wrong; ERR_BATCH_TOO_LARGE at the operation behind max_ops; ERR_NO_MEMORY. */
enum err change_set_json_parse(struct span text, size_t max_ops, struct arena *arena,
	struct change_set_json *ret, struct err_detail *detail);

#endif
