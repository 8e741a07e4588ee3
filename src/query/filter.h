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
	FILTER_AND,     /* left, right */
	FILTER_OR,      /* left, right */
	FILTER_NOT,     /* left */
	FILTER_COMPARE, /* slot, op, literal; `literal op property` is mirrored by the parser */
};

enum filter_op {
	FILTER_EQ,
	FILTER_NE,
	FILTER_GT,
	FILTER_GE,
	FILTER_LT,
	FILTER_LE,
};

/* Slots with a fixed meaning; further names follow from FILTER_SLOT_NAMED. */
enum filter_slot {
	FILTER_SLOT_PK,        /* PartitionKey */
	FILTER_SLOT_RK,        /* RowKey */
	FILTER_SLOT_TIMESTAMP, /* Timestamp */
	FILTER_SLOT_NAMED,
};

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

/* The most comparisons in one filter, and the deepest nesting of parentheses and nots: what
 * a hostile text could cost otherwise. */
#define FILTER_COMPARISONS_MAX 1000
#define FILTER_DEPTH_MAX 200

/* ret is zeroed first; filter_fini() it whatever the answer.  An empty or blank text is
 * the filter that matches everything.  text must be valid UTF-8 (else ERR_INVALID_INPUT)
 * and is not needed afterwards.
 * ERR_INVALID_INPUT with the text "Syntax error at position N in 'TEXT'." (N: 0-based
 * offset just past the offending token; detail->offset too), ERR_NOT_SUPPORTED for what
 * the service answers 501: functions, arithmetic, property against property, literal
 * against literal, null. */
enum err filter_parse(struct span text, struct filter *ret, struct err_detail *detail);
void filter_fini(struct filter *f);

/* Whether any slot from FILTER_SLOT_NAMED on is used: if not, keys and version are enough. */
bool filter_needs_properties(const struct filter *f);

/* Fills values[FILTER_SLOT_NAMED..nslots) from the entity's properties; NULL where it has
 * none.  The fixed slots are the caller's to fill. */
void filter_bind(const struct filter *f, const struct entity *e, const struct value **values);

/* values[slot] for each slot; NULL: the row has no such property.  A comparison with a
 * missing property or of types that do not compare is false ("ne" too if missing; a type
 * mismatch under "ne" is true), and "not" turns the truth value round. */
bool filter_eval(const struct filter *f, const struct value *const *values);

/* The tree as text that parses to the same tree: full parentheses, canonical literals.
 * For tests and for telling the plan. */
void filter_print(const struct filter *f, struct buf *out);

#endif
