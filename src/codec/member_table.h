/* SPDX-License-Identifier: MIT
 * The members of one document by name, each with its annotation: "X" and
 * "X@odata.type" share a row, whichever comes first.  Private to the codecs.
 * Finding a name costs a few compares up to 16 rows and a hash lookup above; the hash
 * is seeded, so that no document can be made to collide. */
#ifndef CODEC_MEMBER_TABLE_H
#define CODEC_MEMBER_TABLE_H

#include "base/arena.h"
#include "base/span.h"
#include "codec/json_scan.h"
#include "model/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct member {
	struct span name; /* unescaped, without "@odata.type" */
	uint64_t hash;
	bool has_value, has_type;
	bool escaped; /* the value holds a backslash */
	enum edm_type type;
	enum json_token token;
	struct span value;
	size_t offset; /* of the value, or of the annotation where there is no value */
};

struct member_table {
	struct member *rows; /* in the order of the document */
	size_t n, cap;
	uint32_t *index; /* row + 1; NULL up to 16 rows */
	size_t mask;
	uint64_t seed;
	struct arena *arena; /* what does not fit into first[] */
	struct member first[24];
};

void member_table_init(struct member_table *t, struct arena *arena);
/* The row of this name, a new one where there is none; valid until the next call.  NULL
 * when memory is out. */
struct member *member_table_get(struct member_table *t, struct span name);

#endif
