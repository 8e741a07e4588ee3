/* SPDX-License-Identifier: MIT
 * Turns filters and bounds into key sets.  Operands of and/or chains are combined in pairs of equal
 * weight: a thousand points cost n log n. */
#include "query/key_ranges.h"

#include "query/key_set.h"

/* Pending operands of a chain.  2^12 is far above FILTER_COMPARISONS_MAX. */
#define FOLD_MAX 12

/* ---- filters ---- */

static enum filter_op negated(enum filter_op op)
{
	switch (op) {
	case FILTER_EQ:
		return FILTER_NE;
	case FILTER_NE:
		return FILTER_EQ;
	case FILTER_GT:
		return FILTER_LE;
	case FILTER_GE:
		return FILTER_LT;
	case FILTER_LT:
		return FILTER_GE;
	case FILTER_LE:
		break;
	}
	return FILTER_GT;
}

static bool holds_for_less(enum filter_op op)
{
	return op == FILTER_NE || op == FILTER_LT || op == FILTER_LE;
}

static bool is_leaf(const struct filter_node *f)
{
	return f->kind == FILTER_COMPARE || f->kind == FILTER_CONSTANT;
}

static struct key_set set_of_leaf(struct key_builder *b, const struct filter_node *f, bool negate)
{
	if (f->kind == FILTER_CONSTANT)
		return key_set_of_all(f->literal.boolean != negate);
	if (f->slot != FILTER_SLOT_PK && f->slot != FILTER_SLOT_RK)
		return key_set_of_all(true);
	if (f->literal.type != EDM_STRING) /* every key is less than a non-string */
		return key_set_of_all(holds_for_less(f->op) != negate);
	struct key_span spans[2];
	struct span key = key_builder_key(b, f->literal.bytes);
	size_t n = key_spans_of(negate ? negated(f->op) : f->op, key, spans);
	return f->slot == FILTER_SLOT_PK ? key_set_of_partitions(b, spans, n)
					 : key_set_of_rows(b, spans, n);
}

/* Combines the operands of an and/or chain in pairs, as merge sort does. */
struct fold {
	bool unite;
	struct key_set sets[FOLD_MAX];
	unsigned weights[FOLD_MAX];
	size_t n;
};

static void fold_top_two(struct key_builder *b, struct fold *f)
{
	f->n--;
	f->sets[f->n - 1] =
		key_set_combine_within_budget(b, f->unite, f->sets[f->n - 1], f->sets[f->n]);
	f->weights[f->n - 1]++;
}

static void fold_add(struct key_builder *b, struct fold *f, struct key_set s)
{
	if (f->n == FOLD_MAX)
		fold_top_two(b, f);
	f->sets[f->n] = s;
	f->weights[f->n] = 0;
	f->n++;
	while (f->n > 1 && f->weights[f->n - 1] == f->weights[f->n - 2])
		fold_top_two(b, f);
}

static struct key_set set_of(struct key_builder *b, const struct filter_node *f, bool negate);

static void fold_operands(
	struct key_builder *b, struct fold *fold, const struct filter_node *f, bool negate)
{
	for (;;) {
		for (; f->kind == FILTER_NOT; f = f->left)
			negate = !negate;
		if (is_leaf(f) || ((f->kind == FILTER_OR) != negate) != fold->unite)
			break;
		/* Chains lean to the right (query/filter.h), so only the left recurses. */
		fold_operands(b, fold, f->left, negate);
		f = f->right;
	}
	fold_add(b, fold, set_of(b, f, negate));
}

static struct key_set set_of(struct key_builder *b, const struct filter_node *f, bool negate)
{
	for (; f->kind == FILTER_NOT; f = f->left)
		negate = !negate;
	if (is_leaf(f))
		return set_of_leaf(b, f, negate);
	struct fold fold = { .unite = (f->kind == FILTER_OR) != negate };
	fold_operands(b, &fold, f, negate);
	while (fold.n > 1)
		fold_top_two(b, &fold);
	return fold.sets[0];
}

/* ---- public functions ---- */

/* ret->arena is the builder's.  Its earlier contents remain in it. */
static enum err finish(struct key_builder *b, struct key_set s, struct key_ranges *ret)
{
	ret->ranges = NULL;
	ret->n = 0;
	if (b->e == ERR_OK && s.n > 0) {
		ret->ranges = key_builder_keep(b, s.v, s.n, sizeof(s.v[0]));
		ret->n = ret->ranges != NULL ? s.n : 0;
	}
	enum err e = b->e;
	key_builder_fini(b);
	return e;
}

enum err key_ranges_all(struct key_ranges *ret)
{
	*ret = (struct key_ranges){ 0 };
	struct key_builder b = { .arena = &ret->arena };
	return finish(&b, key_set_of_all(true), ret);
}

enum err key_ranges_of_filter(const struct filter *f, struct key_ranges *ret)
{
	*ret = (struct key_ranges){ 0 };
	struct key_builder b = { .arena = &ret->arena, .limited = true };
	struct key_set s = f->root != NULL ? set_of(&b, f->root, false) : key_set_of_all(true);
	return finish(&b, s, ret);
}

/* The keys on one side of a bound.  `beyond` is the operator for the partitions that are wholly
 * inside, `within` the one for the rows of partition pk. */
static struct key_set set_of_bound(struct key_builder *b, struct span pk, struct span rk,
	enum filter_op beyond, enum filter_op within)
{
	struct key_span spans[2];
	if (pk.p == NULL)
		return key_set_of_all(true);
	pk = key_builder_key(b, pk);
	if (rk.p == NULL)
		return key_set_of_partitions(b, spans, key_spans_of(within, pk, spans));
	struct key_set others = key_set_of_partitions(b, spans, key_spans_of(beyond, pk, spans));
	struct key_set own = key_set_of_partitions(b, spans, key_spans_of(FILTER_EQ, pk, spans));
	rk = key_builder_key(b, rk);
	struct key_set rows = key_set_of_rows(b, spans, key_spans_of(within, rk, spans));
	return key_set_combine(b, true, others, key_set_combine(b, false, own, rows));
}

enum err key_ranges_between(struct span pk_lo, struct span rk_lo, struct span pk_hi,
	struct span rk_hi, struct key_ranges *ret)
{
	*ret = (struct key_ranges){ 0 };
	struct key_builder b = { .arena = &ret->arena };
	struct key_set lo = set_of_bound(&b, pk_lo, rk_lo, FILTER_GT, FILTER_GE);
	struct key_set hi = set_of_bound(&b, pk_hi, rk_hi, FILTER_LT, FILTER_LE);
	return finish(&b, key_set_combine(&b, false, lo, hi), ret);
}

enum err key_ranges_intersect(struct key_ranges *a, const struct key_ranges *b)
{
	struct key_builder builder = { .arena = &a->arena };
	struct key_set x = { a->ranges, a->n }, y = key_set_copy(&builder, b);
	return finish(&builder, key_set_combine(&builder, false, x, y), a);
}

void key_ranges_fini(struct key_ranges *r)
{
	arena_fini(&r->arena);
	*r = (struct key_ranges){ 0 };
}

static bool rows_hold(const struct key_range *r, struct span rk)
{
	size_t lo = 0, hi = r->nrk;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = key_span_compare(&r->rk[mid], rk);
		if (c == 0)
			return true;
		if (c < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return false;
}

bool key_ranges_hold(const struct key_ranges *r, struct span pk, struct span rk)
{
	size_t lo = 0, hi = r->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = key_span_compare(&r->ranges[mid].pk, pk);
		if (c == 0)
			return rows_hold(&r->ranges[mid], rk);
		if (c < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return false;
}

static bool all_points(const struct key_range *r)
{
	for (size_t i = 0; i < r->nrk; i++) {
		if (!key_span_is_point(&r->rk[i]))
			return false;
	}
	return true;
}

enum key_plan key_ranges_plan(const struct key_ranges *r)
{
	bool partitions = true, points = true;
	if (r->n == 0)
		return KEY_PLAN_NOTHING;
	for (size_t i = 0; i < r->n && partitions; i++) {
		partitions = key_span_is_point(&r->ranges[i].pk);
		points = points && partitions && all_points(&r->ranges[i]);
	}
	if (points)
		return r->n == 1 && r->ranges[0].nrk == 1 ? KEY_PLAN_POINT : KEY_PLAN_POINTS;
	if (partitions)
		return KEY_PLAN_ROW_RANGE;
	const struct key_range *first = &r->ranges[0];
	bool all = r->n == 1 && key_span_is_all(&first->pk) && first->nrk == 1 &&
		key_span_is_all(first->rk);
	return all ? KEY_PLAN_SCAN : KEY_PLAN_PARTITION_RANGE;
}

const char *key_plan_name(enum key_plan plan)
{
	static const char *const names[] = {
		[KEY_PLAN_NOTHING] = "nothing",
		[KEY_PLAN_POINT] = "point",
		[KEY_PLAN_POINTS] = "points",
		[KEY_PLAN_ROW_RANGE] = "row range",
		[KEY_PLAN_PARTITION_RANGE] = "partition range",
		[KEY_PLAN_SCAN] = "table scan",
	};
	return names[plan];
}
