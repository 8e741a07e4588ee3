/* SPDX-License-Identifier: MIT
 * Sets of keys as sweeps over cuts.  A cut is a place between keys: before one, behind one,
 * or behind all; a span is what lies between two cuts, so that open and closed bounds need
 * no cases of their own.
 * Chains of and, or are folded in pairs of equal weight, which keeps a thousand points at
 * n log n.  Spans of RowKeys are shared by the segments that came from the same part of the
 * filter, and never changed.  Where a filter's sets grow beyond the budget (staircases of
 * overlapping ranges), big sets become the one box around them: larger, never smaller. */
#include "query/key_ranges.h"

#include "model/key.h"
#include "model/limits.h"

#include <stdlib.h>
#include <string.h>

/* Segments and spans looked at for one filter: a few milliseconds, a few megabytes. */
#define BUDGET 100000
/* A set with at most so many segments of so many spans each is never simplified. */
#define SMALL 4
/* Operands of a chain that wait for others of their weight: 2^12 is far beyond
 * FILTER_COMPARISONS_MAX. */
#define FOLD_MAX 12

struct cut {
	struct span key;
	bool behind; /* the key; else before it */
	bool end;    /* behind all keys; the others do not matter */
};

/* Spans of RowKeys; n == 0: none. */
struct rows {
	const struct key_span *v;
	size_t n;
};

struct set {
	const struct key_range *v;
	size_t n;
};

struct builder {
	struct arena *arena; /* all that is kept */
	size_t spent;
	bool limited;           /* ERR_RANGE at the end of the budget */
	enum err e;             /* the first error; after it everything does nothing */
	struct key_span *spans; /* scratch */
	size_t nspans, spans_cap;
	struct key_range *ranges; /* scratch */
	size_t nranges, ranges_cap;
	struct rows memo_a, memo_b, memo_ret; /* the last combination of two */
};

/* lo.p and hi.p NULL: every key. */
static const struct key_span every_key;
static const struct key_range everything = { .rk = &every_key, .nrk = 1 };

/* ---- cuts ---- */

static struct cut cut_lo(const struct key_span *s)
{
	if (s->lo.p == NULL)
		return (struct cut){ 0 }; /* before "" */
	return (struct cut){ .key = s->lo, .behind = s->lo_open };
}

static struct cut cut_hi(const struct key_span *s)
{
	return (struct cut){ .key = s->hi, .behind = !s->hi_open, .end = s->hi.p == NULL };
}

static int cut_cmp(struct cut a, struct cut b)
{
	if (a.end || b.end)
		return a.end - b.end;
	int c = span_cmp(a.key, b.key);
	return c != 0 ? c : a.behind - b.behind;
}

static struct cut cut_min(struct cut a, struct cut b)
{
	return cut_cmp(a, b) <= 0 ? a : b;
}

static struct cut cut_max(struct cut a, struct cut b)
{
	return cut_cmp(a, b) >= 0 ? a : b;
}

/* lo < hi. */
static struct key_span span_between(struct cut lo, struct cut hi)
{
	struct key_span s = { 0 };
	if (lo.key.n > 0 || lo.behind) {
		s.lo = lo.key;
		s.lo_open = lo.behind;
	}
	if (!hi.end) {
		s.hi = hi.key;
		s.hi_open = !hi.behind;
	}
	return s;
}

int key_span_compare(const struct key_span *s, struct span key)
{
	struct cut before = { .key = key }, behind = { .key = key, .behind = true };
	if (cut_cmp(behind, cut_lo(s)) <= 0)
		return -1;
	return cut_cmp(before, cut_hi(s)) >= 0;
}

bool key_span_is_point(const struct key_span *s)
{
	return s->hi.p != NULL && !s->lo_open && !s->hi_open && span_eq(s->lo, s->hi);
}

static bool span_is_all(const struct key_span *s)
{
	return s->lo.p == NULL && s->hi.p == NULL;
}

/* ---- the builder ---- */

static void builder_fini(struct builder *b)
{
	free(b->spans);
	free(b->ranges);
}

/* Room for n more elements of `size` behind the first len of *v. */
static bool grow(struct builder *b, void **v, size_t *cap, size_t len, size_t n, size_t size)
{
	size_t want = len + n;
	if (want <= *cap)
		return true;
	want = want < 2 * *cap ? 2 * *cap : want;
	void *p = reallocarray(*v, want, size);
	if (p == NULL) {
		b->e = ERR_NO_MEMORY;
		return false;
	}
	*v = p;
	*cap = want;
	return true;
}

static bool reserve_spans(struct builder *b, size_t n)
{
	void *v = b->spans;
	bool ok = grow(b, &v, &b->spans_cap, b->nspans, n, sizeof(*b->spans));
	b->spans = v;
	return ok;
}

static bool reserve_ranges(struct builder *b, size_t n)
{
	void *v = b->ranges;
	bool ok = grow(b, &v, &b->ranges_cap, b->nranges, n, sizeof(*b->ranges));
	b->ranges = v;
	return ok;
}

/* False where nothing more shall be done. */
static bool spend(struct builder *b, size_t n)
{
	b->spent += n;
	if (b->e == ERR_OK && b->limited && b->spent > BUDGET)
		b->e = ERR_RANGE;
	return b->e == ERR_OK;
}

static void *keep(struct builder *b, const void *v, size_t n, size_t size)
{
	if (b->e != ERR_OK || n == 0)
		return NULL;
	void *p = arena_alloc(b->arena, n * size);
	if (p == NULL)
		b->e = ERR_NO_MEMORY;
	else
		memcpy(p, v, n * size);
	return p;
}

static struct rows keep_rows(struct builder *b, const struct key_span *v, size_t n)
{
	struct rows r = { keep(b, v, n, sizeof(*v)), n };
	return r.v != NULL ? r : (struct rows){ 0 };
}

static struct set keep_ranges(struct builder *b, const struct key_range *v, size_t n)
{
	struct set s = { keep(b, v, n, sizeof(*v)), n };
	return s.v != NULL ? s : (struct set){ 0 };
}

/* In order form.  What lies behind the longest legal key decides no comparison with one,
 * so a longer one is cut: one byte more than any key keeps it different from all. */
static struct span keep_key(struct builder *b, struct span utf8)
{
	struct span key = { utf8.p, utf8.n > LIMIT_KEY_BYTES ? LIMIT_KEY_BYTES + 1 : utf8.n };
	char *p = arena_alloc(b->arena, key.n + 1);
	if (p == NULL) {
		b->e = ERR_NO_MEMORY;
		return SPAN_LIT("");
	}
	if (key.n > 0)
		key_to_order(key.p, key.n, p);
	p[key.n] = '\0';
	return span_make(p, key.n);
}

/* ---- spans of RowKeys ---- */

static bool rows_are_all(struct rows r)
{
	return r.n == 1 && span_is_all(r.v);
}

static bool rows_same(struct builder *b, struct rows x, struct rows y)
{
	if (x.n != y.n)
		return false;
	for (size_t i = 0; x.v != y.v && i < x.n; i++) {
		if (!spend(b, 1) || cut_cmp(cut_lo(&x.v[i]), cut_lo(&y.v[i])) != 0 ||
			cut_cmp(cut_hi(&x.v[i]), cut_hi(&y.v[i])) != 0)
			return false;
	}
	return true;
}

static void intersect_rows(struct builder *b, struct rows x, struct rows y)
{
	for (size_t i = 0, j = 0; i < x.n && j < y.n;) {
		struct cut lo = cut_max(cut_lo(&x.v[i]), cut_lo(&y.v[j]));
		struct cut x_hi = cut_hi(&x.v[i]), y_hi = cut_hi(&y.v[j]);
		struct cut hi = cut_min(x_hi, y_hi);
		if (cut_cmp(lo, hi) < 0)
			b->spans[b->nspans++] = span_between(lo, hi);
		if (cut_cmp(x_hi, y_hi) <= 0)
			i++;
		else
			j++;
	}
}

static void unite_rows(struct builder *b, struct rows x, struct rows y)
{
	for (size_t i = 0, j = 0; i < x.n || j < y.n;) {
		bool from_x =
			j == y.n || (i < x.n && cut_cmp(cut_lo(&x.v[i]), cut_lo(&y.v[j])) <= 0);
		const struct key_span *next = from_x ? &x.v[i++] : &y.v[j++];
		struct key_span *last = b->nspans > 0 ? &b->spans[b->nspans - 1] : NULL;
		if (last == NULL || cut_cmp(cut_hi(last), cut_lo(next)) < 0)
			b->spans[b->nspans++] = *next;
		else
			*last = span_between(cut_lo(last), cut_max(cut_hi(last), cut_hi(next)));
	}
}

static struct rows combine_rows(struct builder *b, bool unite, struct rows x, struct rows y)
{
	if (x.n == 0 || rows_are_all(y))
		return unite ? y : x;
	if (y.n == 0 || rows_are_all(x))
		return unite ? x : y;
	if (x.v == y.v)
		return x;
	if (b->memo_a.v == x.v && b->memo_b.v == y.v)
		return b->memo_ret;
	b->nspans = 0;
	if (!spend(b, x.n + y.n) || !reserve_spans(b, x.n + y.n))
		return (struct rows){ 0 };
	if (unite)
		unite_rows(b, x, y);
	else
		intersect_rows(b, x, y);
	b->memo_a = x;
	b->memo_b = y;
	b->memo_ret = keep_rows(b, b->spans, b->nspans);
	return b->memo_ret;
}

/* ---- sets ---- */

/* What stands between two cuts goes behind the scratch's last segment, or into it. */
static void emit(struct builder *b, struct cut lo, struct cut hi, struct rows rows)
{
	struct key_range *last = b->nranges > 0 ? &b->ranges[b->nranges - 1] : NULL;
	if (rows.n == 0)
		return;
	if (last != NULL && cut_cmp(cut_hi(&last->pk), lo) == 0 &&
		rows_same(b, (struct rows){ last->rk, last->nrk }, rows)) {
		last->pk = span_between(cut_lo(&last->pk), hi);
		return;
	}
	if (!reserve_ranges(b, 1))
		return;
	b->ranges[b->nranges++] =
		(struct key_range){ .pk = span_between(lo, hi), .rk = rows.v, .nrk = rows.n };
}

/* One of the two sets in a sweep over PartitionKeys. */
struct sweep {
	struct set set;
	size_t i;
	bool in; /* in segment i; else before it */
};

static bool sweep_at_end(const struct sweep *s)
{
	return s->i == s->set.n;
}

/* Where it enters or leaves a segment next. */
static struct cut sweep_next(const struct sweep *s)
{
	if (sweep_at_end(s))
		return (struct cut){ .end = true };
	const struct key_span *pk = &s->set.v[s->i].pk;
	return s->in ? cut_hi(pk) : cut_lo(pk);
}

/* Over every cut at `at`: a segment may begin where another ends. */
static void sweep_pass(struct sweep *s, struct cut at)
{
	while (!sweep_at_end(s) && cut_cmp(sweep_next(s), at) == 0) {
		s->i += s->in;
		s->in = !s->in;
	}
}

static struct rows sweep_rows(const struct sweep *s)
{
	if (!s->in)
		return (struct rows){ 0 };
	return (struct rows){ s->set.v[s->i].rk, s->set.v[s->i].nrk };
}

static struct set combine(struct builder *b, bool unite, struct set x, struct set y)
{
	struct sweep a = { .set = x }, c = { .set = y };
	struct cut from = { 0 };
	b->nranges = 0;
	b->memo_a = (struct rows){ 0 };
	sweep_pass(&a, from);
	sweep_pass(&c, from);
	while (!(sweep_at_end(&a) && sweep_at_end(&c)) && spend(b, 1)) {
		struct cut to = cut_min(sweep_next(&a), sweep_next(&c));
		struct rows rows = combine_rows(b, unite, sweep_rows(&a), sweep_rows(&c));
		emit(b, from, to, rows);
		sweep_pass(&a, to);
		sweep_pass(&c, to);
		from = to;
	}
	return keep_ranges(b, b->ranges, b->nranges);
}

static bool is_small(struct set s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (i == SMALL || s.v[i].nrk > SMALL)
			return false;
	}
	return true;
}

/* A big set becomes the box around it. */
static struct set simplify(struct builder *b, struct set s)
{
	if (is_small(s))
		return s;
	struct cut lo = cut_lo(&s.v[0].rk[0]), hi = cut_hi(&s.v[0].rk[s.v[0].nrk - 1]);
	for (size_t i = 1; i < s.n; i++) {
		lo = cut_min(lo, cut_lo(&s.v[i].rk[0]));
		hi = cut_max(hi, cut_hi(&s.v[i].rk[s.v[i].nrk - 1]));
	}
	struct key_span rk = span_between(lo, hi);
	struct key_range box = {
		.pk = span_between(cut_lo(&s.v[0].pk), cut_hi(&s.v[s.n - 1].pk)),
		.rk = keep_rows(b, &rk, 1).v,
		.nrk = 1,
	};
	return keep_ranges(b, &box, 1);
}

static struct set combine_within_budget(struct builder *b, bool unite, struct set x, struct set y)
{
	if (b->limited) {
		struct set ret = combine(b, unite, x, y);
		if (b->e != ERR_RANGE)
			return ret;
		/* From here on sets are small, and every step is cheap. */
		b->e = ERR_OK;
		b->limited = false;
	}
	x = simplify(b, x);
	y = simplify(b, y);
	return b->e == ERR_OK ? combine(b, unite, x, y) : (struct set){ 0 };
}

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

/* The keys k with `k op key`: up to two spans. */
static size_t spans_of(enum filter_op op, struct span key, struct key_span out[2])
{
	const struct cut first = { 0 }, end = { .end = true };
	const struct cut before = { .key = key }, behind = { .key = key, .behind = true };
	size_t n = 0;
	if (op == FILTER_LT || op == FILTER_NE) {
		if (cut_cmp(first, before) < 0)
			out[n++] = span_between(first, before);
	}
	if (op == FILTER_EQ)
		out[n++] = span_between(before, behind);
	if (op == FILTER_LE)
		out[n++] = span_between(first, behind);
	if (op == FILTER_GE)
		out[n++] = span_between(before, end);
	if (op == FILTER_GT || op == FILTER_NE)
		out[n++] = span_between(behind, end);
	return n;
}

static struct set set_of_all(bool all)
{
	return all ? (struct set){ &everything, 1 } : (struct set){ 0 };
}

static struct set set_of_partitions(struct builder *b, const struct key_span *pk, size_t n)
{
	struct key_range r[2];
	for (size_t i = 0; i < n; i++)
		r[i] = (struct key_range){ .pk = pk[i], .rk = &every_key, .nrk = 1 };
	return keep_ranges(b, r, n);
}

static struct set set_of_rows(struct builder *b, const struct key_span *rk, size_t n)
{
	struct rows rows = keep_rows(b, rk, n);
	struct key_range r = { .rk = rows.v, .nrk = rows.n };
	return rows.n > 0 ? keep_ranges(b, &r, 1) : (struct set){ 0 };
}

static struct set set_of_comparison(struct builder *b, const struct filter_node *f, bool negate)
{
	if (f->slot != FILTER_SLOT_PK && f->slot != FILTER_SLOT_RK)
		return set_of_all(true);
	if (f->literal.type != EDM_STRING) /* a mismatch is true under "ne" alone */
		return set_of_all((f->op == FILTER_NE) != negate);
	struct key_span spans[2];
	struct span key = keep_key(b, f->literal.bytes);
	size_t n = spans_of(negate ? negated(f->op) : f->op, key, spans);
	return f->slot == FILTER_SLOT_PK ? set_of_partitions(b, spans, n)
					 : set_of_rows(b, spans, n);
}

/* The operands of a chain of ands or ors, combined pair by pair as in a merge sort. */
struct fold {
	bool unite;
	struct set sets[FOLD_MAX];
	unsigned weights[FOLD_MAX];
	size_t n;
};

static void fold_top_two(struct builder *b, struct fold *f)
{
	f->n--;
	f->sets[f->n - 1] = combine_within_budget(b, f->unite, f->sets[f->n - 1], f->sets[f->n]);
	f->weights[f->n - 1]++;
}

static void fold_add(struct builder *b, struct fold *f, struct set s)
{
	if (f->n == FOLD_MAX)
		fold_top_two(b, f);
	f->sets[f->n] = s;
	f->weights[f->n] = 0;
	f->n++;
	while (f->n > 1 && f->weights[f->n - 1] == f->weights[f->n - 2])
		fold_top_two(b, f);
}

static struct set set_of(struct builder *b, const struct filter_node *f, bool negate);

static void fold_operands(
	struct builder *b, struct fold *fold, const struct filter_node *f, bool negate)
{
	for (;;) {
		for (; f->kind == FILTER_NOT; f = f->left)
			negate = !negate;
		if (f->kind == FILTER_COMPARE || ((f->kind == FILTER_OR) != negate) != fold->unite)
			break;
		/* Chains lean to the right (query/filter.h): no recursion there. */
		fold_operands(b, fold, f->left, negate);
		f = f->right;
	}
	fold_add(b, fold, set_of(b, f, negate));
}

static struct set set_of(struct builder *b, const struct filter_node *f, bool negate)
{
	for (; f->kind == FILTER_NOT; f = f->left)
		negate = !negate;
	if (f->kind == FILTER_COMPARE)
		return set_of_comparison(b, f, negate);
	struct fold fold = { .unite = (f->kind == FILTER_OR) != negate };
	fold_operands(b, &fold, f, negate);
	while (fold.n > 1)
		fold_top_two(b, &fold);
	return fold.sets[0];
}

/* ---- the door ---- */

/* ret->arena is the builder's; what it held before stays in it. */
static enum err finish(struct builder *b, struct set s, struct key_ranges *ret)
{
	ret->ranges = NULL;
	ret->n = 0;
	if (b->e == ERR_OK && s.n > 0) {
		ret->ranges = keep(b, s.v, s.n, sizeof(s.v[0]));
		ret->n = ret->ranges != NULL ? s.n : 0;
	}
	enum err e = b->e;
	builder_fini(b);
	return e;
}

enum err key_ranges_all(struct key_ranges *ret)
{
	*ret = (struct key_ranges){ 0 };
	struct builder b = { .arena = &ret->arena };
	return finish(&b, set_of_all(true), ret);
}

enum err key_ranges_of_filter(const struct filter *f, struct key_ranges *ret)
{
	*ret = (struct key_ranges){ 0 };
	struct builder b = { .arena = &ret->arena, .limited = true };
	struct set s = f->root != NULL ? set_of(&b, f->root, false) : set_of_all(true);
	return finish(&b, s, ret);
}

/* One end of a range in key order: `beyond` is the operator for the partitions that lie
 * wholly inside, `within` the one for the rows of the partition pk. */
static struct set set_of_bound(struct builder *b, struct span pk, struct span rk,
	enum filter_op beyond, enum filter_op within)
{
	struct key_span spans[2];
	if (pk.p == NULL)
		return set_of_all(true);
	pk = keep_key(b, pk);
	if (rk.p == NULL)
		return set_of_partitions(b, spans, spans_of(within, pk, spans));
	struct set others = set_of_partitions(b, spans, spans_of(beyond, pk, spans));
	struct set own = set_of_partitions(b, spans, spans_of(FILTER_EQ, pk, spans));
	rk = keep_key(b, rk);
	struct set rows = set_of_rows(b, spans, spans_of(within, rk, spans));
	return combine(b, true, others, combine(b, false, own, rows));
}

enum err key_ranges_between(struct span pk_lo, struct span rk_lo, struct span pk_hi,
	struct span rk_hi, struct key_ranges *ret)
{
	*ret = (struct key_ranges){ 0 };
	struct builder b = { .arena = &ret->arena };
	struct set lo = set_of_bound(&b, pk_lo, rk_lo, FILTER_GT, FILTER_GE);
	struct set hi = set_of_bound(&b, pk_hi, rk_hi, FILTER_LT, FILTER_LE);
	return finish(&b, combine(&b, false, lo, hi), ret);
}

static struct span adopt_key(struct builder *b, struct span key)
{
	if (key.p == NULL)
		return key;
	key = arena_copy(b->arena, key);
	if (key.p == NULL)
		b->e = ERR_NO_MEMORY;
	return key;
}

static struct key_span adopt_span(struct builder *b, struct key_span s)
{
	s.lo = adopt_key(b, s.lo);
	s.hi = adopt_key(b, s.hi);
	return s;
}

static const struct key_span *adopt_rows(struct builder *b, const struct key_span *rk, size_t n)
{
	b->nspans = 0;
	if (!reserve_spans(b, n))
		return NULL;
	for (size_t i = 0; i < n; i++)
		b->spans[b->nspans++] = adopt_span(b, rk[i]);
	return keep_rows(b, b->spans, b->nspans).v;
}

/* A copy in the builder's arena, with rows still shared where neighbours share them. */
static struct set adopt(struct builder *b, const struct key_ranges *r)
{
	const struct key_span *theirs = NULL, *ours = NULL;
	b->nranges = 0;
	if (!reserve_ranges(b, r->n))
		return (struct set){ 0 };
	for (size_t i = 0; i < r->n && b->e == ERR_OK; i++) {
		if (r->ranges[i].rk != theirs) {
			theirs = r->ranges[i].rk;
			ours = adopt_rows(b, theirs, r->ranges[i].nrk);
		}
		b->ranges[b->nranges++] = (struct key_range){
			.pk = adopt_span(b, r->ranges[i].pk), .rk = ours, .nrk = r->ranges[i].nrk
		};
	}
	return keep_ranges(b, b->ranges, b->nranges);
}

enum err key_ranges_intersect(struct key_ranges *a, const struct key_ranges *b)
{
	struct builder builder = { .arena = &a->arena };
	struct set x = { a->ranges, a->n }, y = adopt(&builder, b);
	return finish(&builder, combine(&builder, false, x, y), a);
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
	struct rows rows = { r->ranges[0].rk, r->ranges[0].nrk };
	bool all = r->n == 1 && span_is_all(&r->ranges[0].pk) && rows_are_all(rows);
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
