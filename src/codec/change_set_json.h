/* SPDX-License-Identifier: MIT
 * A change set as JSON: an array of operations, or operations one after another (JSON lines).  An
 * operation is an object with one of insert, upsert, merge, replace, upsert_merge, delete and its
 * entity, and maybe "if_match", in either order; or with put_message and a message.
 *
 * This parser finds the entities and their positions; codec/entity_json.h decodes them.  jansson is
 * not used: an entity must reach entity_json.h byte for byte, and errors need the position of a
 * value. */
#ifndef CODEC_CHANGE_SET_JSON_H
#define CODEC_CHANGE_SET_JSON_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"

#include <stddef.h>
#include <stdint.h>

enum change_verb {
	CHANGE_VERB_DELETE,
	CHANGE_VERB_INSERT,
	CHANGE_VERB_MERGE,
	CHANGE_VERB_PUT_MESSAGE,
	CHANGE_VERB_REPLACE,
	CHANGE_VERB_UPSERT,
	CHANGE_VERB_UPSERT_MERGE,
	CHANGE_VERB_COUNT_
};

/* Returns the name of an operation, such as "upsert_merge". */
const char *change_verb_text(enum change_verb v);

struct change_set_json_op {
	enum change_verb verb;
	struct span entity;     /* the entity or message in the text, with its braces */
	struct span if_match;   /* p is NULL without one */
	size_t offset;          /* of the opening brace */
	size_t if_match_offset; /* of the value */
};

struct change_set_json {
	struct change_set_json_op *ops;
	size_t n;
};

struct change_set_json_message {
	struct span queue, text;
	int64_t visibility_s, ttl_s; /* as given; MESSAGE_JSON_UNSET without the member */
};
#define MESSAGE_JSON_UNSET INT64_MIN

/* Parses the text in one pass.  Spans borrow from text or are in the arena, whose size is
 * proportional to the text.  ret->ops also has the operations before an error; detail->op is the
 * index of the operation with the error.
 *
 * ERR_INCOMPLETE for the start of a change set, also an empty one; JSON lines are complete behind
 * an operation.  ERR_INVALID_INPUT with the position of the first wrong byte or member.
 * ERR_BATCH_TOO_LARGE at operation max_ops + 1.  ERR_NO_MEMORY. */
enum err change_set_json_parse(struct span text, size_t max_ops, struct arena *arena,
	struct change_set_json *ret, struct err_detail *detail);

/* Parses the object of a put_message.  queue and text must be there.  Spans borrow from object or
 * are in the arena.  ERR_INVALID_INPUT with the position in object.  ERR_NO_MEMORY. */
enum err change_set_json_message(struct span object, struct arena *arena,
	struct change_set_json_message *ret, struct err_detail *detail);

#endif
