/* SPDX-License-Identifier: MIT
 * $filter: the text becomes a tree, the tree is evaluated on decoded values.  The names in
 * a filter are numbered (slots), so that a row's properties are looked up once and the
 * evaluation follows no string.  Grammar, types and errors: protocol sections 6.1 to 6.3. */
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
	FILTER_COMPARE,  /* slot, op, literal; `literal op property` is mirrored by the parser */
	FILTER_CONSTANT, /* literal, a Boolean: true for every row, or for none */
};

enum filter_op {
	FILTER_EQ,
	FILTER_NE,
	FILTER_GT,
	FILTER_GE,
	FILTER_LT,
	FILTER_LE,
};

/* Slots with a fixed meaning; the other names follow from FILTER_SLOT_NAMED, each once, in
 * an order of their own. */
enum filter_slot {
	FILTER_SLOT_PK,        /* PartitionKey */
	FILTER_SLOT_RK,        /* RowKey */
	FILTER_SLOT_TIMESTAMP, /* Timestamp */
	FILTER_SLOT_NAMED,
};

/* a or b or c is a or (b or c): a chain is as deep to the right as it is long, so walk it
 * to the right in a loop.  To the left a tree is no deeper than 2 * FILTER_DEPTH_MAX + 2. */
struct filter_node {
	enum filter_kind kind;
	enum filter_op op;
	unsigned slot;
	struct value literal; /* STRING and BINARY point into the filter's arena */
	const struct filter_node *left, *right;
};

struct filter {
	const struct filter_node *root; /* NULL: every row matches */
	struct span *names;             /* by slot; the fixed ones are filled too */
	unsigned nslots;                /* at least FILTER_SLOT_NAMED */
	struct arena arena;
};

/* The most comparisons and constants in one filter, and the deepest nesting of parentheses and nots (each
 * counts 1): what a hostile text could cost otherwise. */
#define FILTER_COMPARISONS_MAX 1000
#define FILTER_DEPTH_MAX 200

/* ret is zeroed first; filter_fini() it whatever the answer.  An empty or blank text is
 * the filter that matches everything.  text must be valid UTF-8 (else ERR_INVALID_INPUT)
 * and is not needed afterwards.
 * ERR_INVALID_INPUT with the text "Syntax error at position N in 'TEXT'.", maybe followed
 * by what to write instead ("Use gt instead of >, with blanks around it."; N: 0-based
 * offset in bytes just past the offending token; detail->offset too; TEXT is cut where it
 * is too long for a detail) or what limit was passed; ERR_NOT_SUPPORTED for what the
 * service answers 501: functions, arithmetic, property against property, literal against
 * literal; ERR_NO_MEMORY.
 * A word is an operator or a name by its place; not, true, True, false, False, null, NaN,
 * INF and Infinity are never names.  A bare property is compared with true, a bare Boolean
 * is a predicate.  Null is ERR_INVALID_INPUT: no row has it.  A datetime before 1601, which
 * no row can have, is one tick before all. */
enum err filter_parse(struct span text, struct filter *ret, struct err_detail *detail);
/* The same with ASCII letters of string literals in lower case: for names that are compared
 * without case (model/names.h). */
enum err filter_parse_folded(struct span text, struct filter *ret, struct err_detail *detail);
void filter_fini(struct filter *f);

/* Whether any slot from FILTER_SLOT_NAMED on is used: if not, keys and version are enough. */
bool filter_needs_properties(const struct filter *f);

/* Whether a comparison is with this slot. */
bool filter_uses(const struct filter *f, unsigned slot);

/* Fills values[FILTER_SLOT_NAMED..nslots) from the entity's properties; NULL where it has
 * none.  The fixed slots are the caller's to fill. */
void filter_bind(const struct filter *f, const struct entity *e, const struct value **values);

/* The same from a canonical document, of which no more is read than it needs; the values are
 * kept in memory[0..nslots) and the arena.  ERR_NO_MEMORY; ERR_NOT_SUPPORTED, ERR_CORRUPT: ask
 * entity_json_decode(). */
enum err filter_bind_document(const struct filter *f, struct span document, struct arena *arena,
	struct value *memory, const struct value **values);

/* values[slot] for each slot; NULL: the row has no such property.  A comparison with a
 * missing property is false ("ne" too), and "not" turns the truth value round.
 * Types compare that are the same; besides, an Int32 literal with an Int64 or Double
 * property and an Int64 literal with a Double property, exactly.  Nothing else does: not a
 * Double literal with an Int64 property, not an Int64 or Double literal with an Int32 one.
 * A property of another type is less than every literal: ne, lt, le are true.
 * Strings are ordered by UTF-16 code unit (model/key.h). */
bool filter_eval(const struct filter *f, const struct value *const *values);

/* The tree as text that parses to the same tree: the parentheses that it needs and no
 * others, canonical literals, the property on the left.  For tests and for telling the
 * plan. */
void filter_print(const struct filter *f, struct buf *out);

#endif
