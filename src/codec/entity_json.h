/* SPDX-License-Identifier: MIT
 * Entities as JSON with OData's types: "Born@odata.type":"Edm.DateTime","Born":"...".  Rows are
 * stored in this form, and files show it. */
#ifndef CODEC_ENTITY_JSON_H
#define CODEC_ENTITY_JSON_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "model/entity.h"

#include <stdbool.h>

/* The type of an integer without annotation that does not fit Int32.  FILE: Int64, and an error
 * beyond its range.  REST: Double, as in the protocol. */
enum entity_json_rules {
	ENTITY_JSON_FILE,
	ENTITY_JSON_REST
};

struct entity_json_facts {
	bool has_keys;   /* the document had a PartitionKey or RowKey */
	bool has_system; /* the document had a system property: a key, Timestamp or odata.* */
};

/* Decodes a document and checks everything that does not depend on the path: syntax, types, names,
 * duplicates and limits.  A missing key counts as empty for the size.
 *
 * ret is reset first.  Its strings are in its arena or borrow from text, so text must outlive it.
 * PartitionKey and RowKey must be strings; they set has_pk, pk, has_rk and rk.  Timestamp,
 * "odata.*" and properties that are null are dropped.  ret_facts may be NULL.
 *
 * ERR_INCOMPLETE if the text is a valid start; ERR_EMPTY for white space only.  Else the error of
 * the first broken rule, with its position. */
enum err entity_json_decode(struct span text, enum entity_json_rules rules, struct entity *ret,
	struct entity_json_facts *ret_facts, struct err_detail *detail);

enum entity_json_flags {
	ENTITY_JSON_PK = 1,        /* begin with "PartitionKey" */
	ENTITY_JSON_RK = 2,        /* then "RowKey" */
	ENTITY_JSON_TIMESTAMP = 4, /* then "Timestamp" with its annotation */
	ENTITY_JSON_NEWLINE = 8,   /* end with \n */
};

/* Appends the entity as one compact line, with the properties in their order.  entity_json_decode()
 * with ENTITY_JSON_FILE yields the same entity.  String, Boolean, Int32 and finite Double have no
 * annotation.  For other types the annotation comes first. */
void entity_json_encode(const struct entity *e, unsigned flags, struct buf *out);

/* Sets *ret to the text between the braces of a document that entity_json_encode() wrote.  Returns
 * false for other text. */
bool entity_json_members(struct span document, struct span *ret);

/* Appends one property as entity_json_encode() does.  A comma precedes it unless it is the first of
 * its object.  annotated false: without a type, whatever it is. */
void entity_json_encode_property(
	struct span name, const struct value *v, bool annotated, struct buf *out);

#endif
