/* SPDX-License-Identifier: MIT
 * The members of one document by name, each with its annotation: "X" and "X@odata.type" share a row
 * in either order.  Private to the codecs.
 *
 * A lookup compares up to 16 rows; beyond that it uses a hash table.  The hash is seeded, so that a
 * document cannot cause collisions. */
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
	struct span name; /* without escapes and "@odata.type" */
	uint64_t hash;
	bool has_value, has_type;
	bool escaped; /* the value contains a backslash */
	enum edm_type type;
	enum json_token token;
	struct span value;
	size_t offset; /* of the value, or of the annotation if there is no value */
};

struct member_table {
	struct member *rows; /* in the order of the document */
	size_t n, cap;
	uint32_t *index; /* row + 1; NULL up to 16 rows */
	size_t mask;
	uint64_t seed;
	struct arena *arena; /* for what exceeds first[] */
	struct member first[24];
};

/* Initializes an empty table.  The arena gets what does not fit into the struct. */
void member_table_init(struct member_table *t, struct arena *arena);
/* Returns the row of this name and adds it if necessary.  It is valid until the next call.  NULL
 * when memory is out. */
struct member *member_table_get(struct member_table *t, struct span name);

#endif
