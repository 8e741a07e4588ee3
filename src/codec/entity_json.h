/* SPDX-License-Identifier: MIT
 * Entity <-> JSON, in OData's types: "Born@odata.type":"Edm.DateTime","Born":"...".
 * This is the form in which a row is stored, read from a file and written to one. */
#ifndef CODEC_ENTITY_JSON_H
#define CODEC_ENTITY_JSON_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "model/entity.h"

#include <stdbool.h>

/* What an integer literal without annotation means when it does not fit Int32: the file
 * view says Int64 (and an error beyond that), the protocol says Double. */
enum entity_json_rules {
	ENTITY_JSON_FILE,
	ENTITY_JSON_REST
};

struct entity_json_facts {
	bool has_keys;   /* PartitionKey or RowKey stood in the document */
	bool has_system; /* any system property did (keys, Timestamp, odata.*) */
};

/* Decodes and checks everything that does not depend on the path: syntax, types, names,
 * duplicates, limits (entity_check() included; a missing key counts as empty for the
 * size).  ret is reset first; its strings live in its arena or borrow from text, so text
 * must outlive it.  System properties: PartitionKey and RowKey (strings) fill has_pk, pk,
 * has_rk, rk; "odata.*" and Timestamp are dropped.  null: no property.
 * ERR_INCOMPLETE where the text is a valid beginning; ERR_EMPTY where it is empty or
 * white space; else the error of the first rule broken, with its place.
 * ret_facts may be NULL. */
enum err entity_json_decode(struct span text, enum entity_json_rules rules, struct entity *ret,
	struct entity_json_facts *ret_facts, struct err_detail *detail);

enum entity_json_flags {
	ENTITY_JSON_PK = 1,        /* "PartitionKey" first */
	ENTITY_JSON_RK = 2,        /* then "RowKey" */
	ENTITY_JSON_TIMESTAMP = 4, /* then "Timestamp" with its annotation, 7 digits trimmed */
	ENTITY_JSON_NEWLINE = 8,   /* end with \n */
};

/* Compact, one line, properties in their order; what entity_json_decode() with
 * ENTITY_JSON_FILE reads back as the same entity.  String, Boolean, Int32 and finite
 * Double go bare, the rest annotated (annotation first). */
void entity_json_encode(const struct entity *e, unsigned flags, struct buf *out);

/* What stands between the braces of a document that entity_json_encode() has written, to be
 * put into another object; false if it is none. */
bool entity_json_members(struct span document, struct span *ret);

/* One property as entity_json_encode() writes it, with a comma before it unless it is the
 * first of its object.  Not annotated: the bare member, whatever its type. */
void entity_json_encode_property(
	struct span name, const struct value *v, bool annotated, struct buf *out);

#endif
