/* SPDX-License-Identifier: MIT
 * $filter: the parser turns the text into a tree, which is evaluated on decoded values.  Each name
 * in a filter has a number, its slot.  So a row's properties are looked up once, and the evaluation
 * compares no names.
 *
 * Protocol sections 6.1 to 6.3 have the grammar, the types and the errors. */
#ifndef QUERY_FILTER_H
#define QUERY_FILTER_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "model/entity.h"
#include "model/value.h"

#include <stdbool.h>
#include <stddef.h>

enum filter_kind {
	FILTER_AND,      /* left, right */
	FILTER_OR,       /* left, right */
	FILTER_NOT,      /* left */
	FILTER_COMPARE,  /* slot, op, literal; the parser mirrors `literal op property` */
	FILTER_CONSTANT, /* literal, a Boolean: every row matches, or none */
};

enum filter_op {
	FILTER_EQ,
	FILTER_NE,
	FILTER_GT,
	FILTER_GE,
	FILTER_LT,
	FILTER_LE,
};

/* Slots with a fixed meaning.  The other names follow from FILTER_SLOT_NAMED on; each has one
 * slot. */
enum filter_slot {
	FILTER_SLOT_PK,        /* PartitionKey */
	FILTER_SLOT_RK,        /* RowKey */
	FILTER_SLOT_TIMESTAMP, /* Timestamp */
	FILTER_SLOT_NAMED,
};

/* A chain leans to the right: `a or b or c` is `a or (b or c)`.  So walk to the right in a loop,
 * not by recursion.  To the left a tree is at most 2 * FILTER_DEPTH_MAX + 2 deep. */
struct filter_node {
	enum filter_kind kind;
	enum filter_op op;
	unsigned slot;
	struct value literal; /* the filter's arena owns the bytes of STRING and BINARY */
	const struct filter_node *left, *right;
};

struct filter {
	const struct filter_node *root; /* NULL: every row matches */
	struct span *names;             /* by slot, the fixed ones included */
	unsigned nslots;                /* at least FILTER_SLOT_NAMED */
	struct arena arena;
};

/* Limits for hostile filters: comparisons and constants, and nested parentheses and nots. */
#define FILTER_COMPARISONS_MAX 1000
#define FILTER_DEPTH_MAX 200

/* Parses a filter.  Zeroes *ret first; call filter_fini() also after an error.  An empty or blank
 * text matches every row.  The filter keeps no reference to text.
 *
 * A word's position decides if it is an operator or a name.  These are never names: not, true,
 * True, false, False, null, NaN, INF, Infinity.  A property alone is compared with true; a Boolean
 * alone is a predicate.  A datetime before 1601 comes before every row's.
 *
 * ERR_INVALID_INPUT: invalid UTF-8, a syntax error, a comparison with null, a limit.  For a syntax
 * error the detail says "Syntax error at position N in 'TEXT'." and may add advice.  N counts
 * UTF-16 units up to the end of the wrong token; detail->offset counts its bytes.  Long texts are
 * cut.
 * ERR_NOT_SUPPORTED: the service answers 501 too.  These are functions, arithmetic, property
 * against property and literal against literal.
 * ERR_NO_MEMORY. */
enum err filter_parse(struct span text, struct filter *ret, struct err_detail *detail);
/* Parses a filter for names that are compared without case (model/names.h).  It puts the ASCII
 * letters of string literals in lower case. */
enum err filter_parse_folded(struct span text, struct filter *ret, struct err_detail *detail);
/* Frees the filter. */
void filter_fini(struct filter *f);

/* Returns true if the filter uses a slot from FILTER_SLOT_NAMED on.  If not, keys and Timestamp
 * suffice. */
bool filter_needs_properties(const struct filter *f);

/* Returns true if a comparison uses this slot. */
bool filter_uses(const struct filter *f, unsigned slot);

/* Fills values[FILTER_SLOT_NAMED..nslots) from the entity's properties, with NULL for a missing
 * one.  The caller fills the fixed slots. */
void filter_bind(const struct filter *f, const struct entity *e, const struct value **values);

/* Does the same from a canonical document (codec/entity_json.h), and stops once all slots are
 * filled.  The values are in memory[0..nslots) and the arena.  ERR_NO_MEMORY.  On ERR_NOT_SUPPORTED
 * and ERR_CORRUPT the caller must use entity_json_decode() instead. */
enum err filter_bind_document(const struct filter *f, struct span document, struct arena *arena,
	struct value *memory, const struct value **values);

/* Evaluates the filter on a row.  values has one entry for each slot; NULL is a missing property.
 *
 * A comparison with a missing property is false, also for "ne"; "not" inverts that.  Values of the
 * same type compare, and strings by UTF-16 unit (model/key.h).  Besides, an Int32 literal compares
 * with Int64 and Double properties, and an Int64 literal with Double properties, exactly.  A
 * property of any other type is less than every literal: ne, lt and le are true. */
bool filter_eval(const struct filter *f, const struct value *const *values);

/* Appends text that parses to the same tree, for tests and for .explain.  Only necessary
 * parentheses are written, literals are canonical, and properties stand left. */
void filter_print(const struct filter *f, struct buf *out);

#endif
