/* SPDX-License-Identifier: MIT
 * Key sets as sweeps over cuts.  A cut is a position between keys: before a key, behind it, or
 * behind all keys.  A span lies between two cuts, so open and closed bounds need no special
 * cases. */
#include "query/key_set.h"

#include "model/key.h"
#include "model/limits.h"

#include <stdlib.h>
#include <string.h>

/* How many segments and spans a filter may cost: a few milliseconds and megabytes. */
#define BUDGET 100000
/* A set of at most this many segments, each of at most this many spans, is never simplified. */
#define SMALL 4

struct cut {
	struct span key;
	bool behind; /* behind the key; else before it */
	bool end;    /* behind all keys; key and behind are unused */
};

/* lo.p and hi.p are NULL: every key. */
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

/* lo must be less than hi. */
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

bool key_span_is_all(const struct key_span *s)
{
	return s->lo.p == NULL && s->hi.p == NULL;
}

/* ---- the builder ---- */

void key_builder_fini(struct key_builder *b)
{
	free(b->spans);
	free(b->ranges);
}

/* Makes room for n more elements of `size` bytes behind the first len of *v. */
static bool grow(struct key_builder *b, void **v, size_t *cap, size_t len, size_t n, size_t size)
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

static bool reserve_spans(struct key_builder *b, size_t n)
{
	void *v = b->spans;
	bool ok = grow(b, &v, &b->spans_cap, b->nspans, n, sizeof(*b->spans));
	b->spans = v;
	return ok;
}

static bool reserve_ranges(struct key_builder *b, size_t n)
{
	void *v = b->ranges;
	bool ok = grow(b, &v, &b->ranges_cap, b->nranges, n, sizeof(*b->ranges));
	b->ranges = v;
	return ok;
}

/* Returns false if work must stop. */
static bool spend(struct key_builder *b, size_t n)
{
	b->spent += n;
	if (b->e == ERR_OK && b->limited && b->spent > BUDGET)
		b->e = ERR_RANGE;
	return b->e == ERR_OK;
}

void *key_builder_keep(struct key_builder *b, const void *v, size_t n, size_t size)
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

static struct key_rows keep_rows(struct key_builder *b, const struct key_span *v, size_t n)
{
	struct key_rows r = { key_builder_keep(b, v, n, sizeof(*v)), n };
	return r.v != NULL ? r : (struct key_rows){ 0 };
}

static struct key_set keep_ranges(struct key_builder *b, const struct key_range *v, size_t n)
{
	struct key_set s = { key_builder_keep(b, v, n, sizeof(*v)), n };
	return s.v != NULL ? s : (struct key_set){ 0 };
}

/* A key that is longer than any valid key is cut one byte behind the limit.  It still differs from
 * every valid key, and its order is the same. */
struct span key_builder_key(struct key_builder *b, struct span utf8)
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

static bool rows_are_all(struct key_rows r)
{
	return r.n == 1 && key_span_is_all(r.v);
}

static bool rows_same(struct key_builder *b, struct key_rows x, struct key_rows y)
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

static void intersect_rows(struct key_builder *b, struct key_rows x, struct key_rows y)
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

static void unite_rows(struct key_builder *b, struct key_rows x, struct key_rows y)
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

static struct key_rows combine_rows(
	struct key_builder *b, bool unite, struct key_rows x, struct key_rows y)
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
		return (struct key_rows){ 0 };
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

/* Appends a segment to the scratch, or extends the last one. */
static void emit(struct key_builder *b, struct cut lo, struct cut hi, struct key_rows rows)
{
	struct key_range *last = b->nranges > 0 ? &b->ranges[b->nranges - 1] : NULL;
	if (rows.n == 0)
		return;
	if (last != NULL && cut_cmp(cut_hi(&last->pk), lo) == 0 &&
		rows_same(b, (struct key_rows){ last->rk, last->nrk }, rows)) {
		last->pk = span_between(cut_lo(&last->pk), hi);
		return;
	}
	if (!reserve_ranges(b, 1))
		return;
	b->ranges[b->nranges++] =
		(struct key_range){ .pk = span_between(lo, hi), .rk = rows.v, .nrk = rows.n };
}

/* One operand in a sweep over PartitionKeys. */
struct sweep {
	struct key_set set;
	size_t i;
	bool in; /* inside segment i; else before it */
};

static bool sweep_at_end(const struct sweep *s)
{
	return s->i == s->set.n;
}

/* Returns the next cut at which it enters or leaves a segment. */
static struct cut sweep_next(const struct sweep *s)
{
	if (sweep_at_end(s))
		return (struct cut){ .end = true };
	const struct key_span *pk = &s->set.v[s->i].pk;
	return s->in ? cut_hi(pk) : cut_lo(pk);
}

/* Passes all cuts at `at`: a segment can begin where another ends. */
static void sweep_pass(struct sweep *s, struct cut at)
{
	while (!sweep_at_end(s) && cut_cmp(sweep_next(s), at) == 0) {
		s->i += s->in;
		s->in = !s->in;
	}
}

static struct key_rows sweep_rows(const struct sweep *s)
{
	if (!s->in)
		return (struct key_rows){ 0 };
	return (struct key_rows){ s->set.v[s->i].rk, s->set.v[s->i].nrk };
}

struct key_set key_set_combine(
	struct key_builder *b, bool unite, struct key_set x, struct key_set y)
{
	struct sweep a = { .set = x }, c = { .set = y };
	struct cut from = { 0 };
	b->nranges = 0;
	b->memo_a = (struct key_rows){ 0 };
	sweep_pass(&a, from);
	sweep_pass(&c, from);
	while (!(sweep_at_end(&a) && sweep_at_end(&c)) && spend(b, 1)) {
		struct cut to = cut_min(sweep_next(&a), sweep_next(&c));
		struct key_rows rows = combine_rows(b, unite, sweep_rows(&a), sweep_rows(&c));
		emit(b, from, to, rows);
		sweep_pass(&a, to);
		sweep_pass(&c, to);
		from = to;
	}
	return keep_ranges(b, b->ranges, b->nranges);
}

static bool is_small(struct key_set s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (i == SMALL || s.v[i].nrk > SMALL)
			return false;
	}
	return true;
}

/* Replaces a large set by its bounding box. */
static struct key_set simplify(struct key_builder *b, struct key_set s)
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

struct key_set key_set_combine_within_budget(
	struct key_builder *b, bool unite, struct key_set x, struct key_set y)
{
	if (b->limited) {
		struct key_set ret = key_set_combine(b, unite, x, y);
		if (b->e != ERR_RANGE)
			return ret;
		/* All sets are small from here on, so every step is cheap. */
		b->e = ERR_OK;
		b->limited = false;
	}
	x = simplify(b, x);
	y = simplify(b, y);
	return b->e == ERR_OK ? key_set_combine(b, unite, x, y) : (struct key_set){ 0 };
}

/* ---- where sets come from ---- */

size_t key_spans_of(enum filter_op op, struct span key, struct key_span out[2])
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

struct key_set key_set_of_all(bool all)
{
	return all ? (struct key_set){ &everything, 1 } : (struct key_set){ 0 };
}

struct key_set key_set_of_partitions(struct key_builder *b, const struct key_span *pk, size_t n)
{
	struct key_range r[2];
	for (size_t i = 0; i < n; i++)
		r[i] = (struct key_range){ .pk = pk[i], .rk = &every_key, .nrk = 1 };
	return keep_ranges(b, r, n);
}

struct key_set key_set_of_rows(struct key_builder *b, const struct key_span *rk, size_t n)
{
	struct key_rows rows = keep_rows(b, rk, n);
	struct key_range r = { .rk = rows.v, .nrk = rows.n };
	return rows.n > 0 ? keep_ranges(b, &r, 1) : (struct key_set){ 0 };
}

static struct span adopt_key(struct key_builder *b, struct span key)
{
	if (key.p == NULL)
		return key;
	key = arena_copy(b->arena, key);
	if (key.p == NULL)
		b->e = ERR_NO_MEMORY;
	return key;
}

static struct key_span adopt_span(struct key_builder *b, struct key_span s)
{
	s.lo = adopt_key(b, s.lo);
	s.hi = adopt_key(b, s.hi);
	return s;
}

static const struct key_span *adopt_rows(struct key_builder *b, const struct key_span *rk, size_t n)
{
	b->nspans = 0;
	if (!reserve_spans(b, n))
		return NULL;
	for (size_t i = 0; i < n; i++)
		b->spans[b->nspans++] = adopt_span(b, rk[i]);
	return keep_rows(b, b->spans, b->nspans).v;
}

struct key_set key_set_copy(struct key_builder *b, const struct key_ranges *r)
{
	const struct key_span *theirs = NULL, *ours = NULL;
	b->nranges = 0;
	if (!reserve_ranges(b, r->n))
		return (struct key_set){ 0 };
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
