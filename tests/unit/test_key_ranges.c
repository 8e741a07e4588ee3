/* SPDX-License-Identifier: MIT
 * Key ranges against brute force: every pair of keys of a small alphabet is tried. */
#include "base/clock.h"
#include "check.h"
#include "model/key.h"
#include "model/limits.h"
#include "query/key_ranges.h"

/* xorshift64*: the same run every time. */
static uint64_t dice_state;

static void dice_seed(unsigned seed)
{
	dice_state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

/* 0 to 2^31 - 1. */
static int dice(void)
{
	dice_state ^= dice_state >> 12;
	dice_state ^= dice_state << 25;
	dice_state ^= dice_state >> 27;
	return (int)((dice_state * UINT64_C(0x2545F4914F6CDD1D)) >> 33);
}

/* U+FFFD comes behind U+10000 in the service's order, and before it in UTF-8's. */
static const char *const keys[] = { "", "a", "ab", "b", "c", "\xf0\x90\x80\x80", "\xef\xbf\xbd" };
#define KEYS ARRAY_LEN(keys)
/* Beside them: what no row can have. */
static const char *const others[] = { "aa", "b/", "\x01", "zz" };

static struct span order(const char *key, char out[64])
{
	key_to_order(key, strlen(key), out);
	return span_make(out, strlen(key));
}

static bool holds(const struct key_ranges *r, const char *pk, const char *rk)
{
	char pk_order[64], rk_order[64];
	return key_ranges_hold(r, order(pk, pk_order), order(rk, rk_order));
}

/* ---- the normal form ---- */

static bool has_room(const struct key_span *s)
{
	if (s->lo.p == NULL && s->lo_open)
		return false;
	if (s->hi.p == NULL)
		return !s->hi_open;
	int c = span_cmp(s->lo.p != NULL ? s->lo : SPAN_LIT(""), s->hi);
	return c < 0 || (c == 0 && !s->lo_open && !s->hi_open);
}

/* -1: a key lies between; 0: they touch; 1: they overlap or are out of order. */
static int gap(const struct key_span *a, const struct key_span *b)
{
	if (a->hi.p == NULL || b->lo.p == NULL)
		return 1;
	int c = span_cmp(a->hi, b->lo);
	if (c != 0)
		return c;
	return a->hi_open && b->lo_open ? -1 : !a->hi_open && !b->lo_open;
}

static bool same_bound(struct span a, struct span b)
{
	return (a.p == NULL) == (b.p == NULL) && span_eq(a, b);
}

static bool same_rows(const struct key_range *a, const struct key_range *b)
{
	if (a->nrk != b->nrk)
		return false;
	for (size_t i = 0; i < a->nrk; i++) {
		const struct key_span *x = &a->rk[i], *y = &b->rk[i];
		if (!same_bound(x->lo, y->lo) || !same_bound(x->hi, y->hi) ||
			x->lo_open != y->lo_open || x->hi_open != y->hi_open)
			return false;
	}
	return true;
}

static bool is_normal(const struct key_ranges *r)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct key_range *at = &r->ranges[i];
		if (at->nrk == 0 || !has_room(&at->pk))
			return false;
		for (size_t j = 0; j < at->nrk; j++) {
			if (!has_room(&at->rk[j]) ||
				(j > 0 && gap(&at->rk[j - 1], &at->rk[j]) >= 0))
				return false;
		}
		int before = i > 0 ? gap(&at[-1].pk, &at->pk) : -1;
		if (before > 0 || (before == 0 && same_rows(&at[-1], at)))
			return false;
	}
	return true;
}

/* ---- filters by hand ---- */

struct maker {
	struct arena arena;
	bool keys_only;
};

static const char *any_literal(void)
{
	size_t i = (size_t)dice() % (KEYS + ARRAY_LEN(others));
	return i < KEYS ? keys[i] : others[i - KEYS];
}

static struct filter_node *node_new(struct maker *m)
{
	struct filter_node *f = arena_alloc(&m->arena, sizeof(*f));
	BUG_ON(f == NULL);
	*f = (struct filter_node){ 0 };
	return f;
}

static struct filter_node *compare(
	struct maker *m, unsigned slot, enum filter_op op, const char *literal)
{
	struct filter_node *f = node_new(m);
	f->kind = FILTER_COMPARE;
	f->slot = slot;
	f->op = op;
	f->literal = (struct value){ .type = EDM_STRING, .bytes = span_of(literal) };
	return f;
}

static struct filter_node *join(struct maker *m, enum filter_kind kind,
	const struct filter_node *left, const struct filter_node *right)
{
	struct filter_node *f = node_new(m);
	f->kind = kind;
	f->left = left;
	f->right = right;
	return f;
}

static struct filter_node *constant(struct maker *m, bool value)
{
	struct filter_node *f = node_new(m);
	f->kind = FILTER_CONSTANT;
	f->literal = (struct value){ .type = EDM_BOOLEAN, .boolean = value };
	return f;
}

static struct filter_node *random_leaf(struct maker *m)
{
	if (dice() % 12 == 0)
		return constant(m, dice() % 2 == 0);
	unsigned slot = (unsigned)dice() % (m->keys_only ? 2 : 4);
	enum filter_op op = (enum filter_op)(dice() % 6);
	struct filter_node *f = compare(m, slot, op, any_literal());
	if (slot < 2 && dice() % 20 == 0)
		f->literal = (struct value){ .type = EDM_INT32, .int32 = 7 };
	return f;
}

static struct filter_node *random_filter(struct maker *m, int size)
{
	if (size <= 1)
		return random_leaf(m);
	if (dice() % 5 == 0)
		return join(m, FILTER_NOT, random_filter(m, size - 1), NULL);
	int left = 1 + dice() % (size - 1);
	enum filter_kind kind = dice() % 2 ? FILTER_AND : FILTER_OR;
	const struct filter_node *a = random_filter(m, left);
	return join(m, kind, a, random_filter(m, size - left));
}

static bool result(enum filter_op op, int c)
{
	switch (op) {
	case FILTER_EQ:
		return c == 0;
	case FILTER_NE:
		return c != 0;
	case FILTER_GT:
		return c > 0;
	case FILTER_GE:
		return c >= 0;
	case FILTER_LT:
		return c < 0;
	case FILTER_LE:
		break;
	}
	return c <= 0;
}

static bool compare_key(const struct filter_node *f, const char *key)
{
	char a[64], b[64];
	if (f->literal.type != EDM_STRING)
		return f->op == FILTER_NE || f->op == FILTER_LT || f->op == FILTER_LE;
	return result(f->op, span_cmp(order(key, a), order(f->literal.bytes.p, b)));
}

/* Whether the filter can have the value `want` for these keys, whatever each comparison of
 * other properties gives. */
static bool can_be(const struct filter_node *f, bool want, const char *pk, const char *rk)
{
	switch (f->kind) {
	case FILTER_NOT:
		return can_be(f->left, !want, pk, rk);
	case FILTER_AND:
	case FILTER_OR:
		if ((f->kind == FILTER_AND) == want)
			return can_be(f->left, want, pk, rk) && can_be(f->right, want, pk, rk);
		return can_be(f->left, want, pk, rk) || can_be(f->right, want, pk, rk);
	case FILTER_CONSTANT:
		return f->literal.boolean == want;
	case FILTER_COMPARE:
		break;
	}
	if (f->slot > FILTER_SLOT_RK)
		return true;
	return compare_key(f, f->slot == FILTER_SLOT_PK ? pk : rk) == want;
}

static bool is_exact(const struct filter_node *f, const struct key_ranges *r)
{
	bool ok = true;
	for (size_t i = 0; i < KEYS * KEYS; i++) {
		const char *pk = keys[i / KEYS], *rk = keys[i % KEYS];
		ok = ok && holds(r, pk, rk) == can_be(f, true, pk, rk);
	}
	return ok;
}

static void random_filters(bool keys_only, int rounds, int size)
{
	for (int i = 0; i < rounds && check_failures == 0; i++) {
		struct maker m = { .keys_only = keys_only };
		struct filter f = { .root = random_filter(&m, 1 + dice() % size) };
		struct key_ranges r;
		CHECK_ERR(key_ranges_of_filter(&f, &r), ERR_OK);
		CHECK(is_normal(&r));
		CHECK(is_exact(f.root, &r));
		key_ranges_fini(&r);
		arena_fini(&m.arena);
	}
}

TEST(random_filters_of_keys_give_exactly_their_keys)
{
	dice_seed(1);
	random_filters(true, 20000, 10);
}

TEST(random_filters_give_exactly_the_keys_that_can_match)
{
	dice_seed(2);
	random_filters(false, 20000, 12);
}

TEST(big_random_filters_do_too)
{
	dice_seed(3);
	random_filters(true, 60, 1000);
	random_filters(false, 60, 1000);
}

TEST(the_evaluator_agrees)
{
	dice_seed(4);
	for (int i = 0; i < 3000 && check_failures == 0; i++) {
		struct maker m = { .keys_only = true };
		struct filter f = { .root = random_filter(&m, 1 + dice() % 8),
			.nslots = FILTER_SLOT_NAMED };
		struct key_ranges r;
		CHECK_ERR(key_ranges_of_filter(&f, &r), ERR_OK);
		for (size_t k = 0; k < KEYS * KEYS; k++) {
			const char *pk = keys[k / KEYS], *rk = keys[k % KEYS];
			struct value a = { .type = EDM_STRING, .bytes = span_of(pk) };
			struct value b = { .type = EDM_STRING, .bytes = span_of(rk) };
			const struct value *values[] = { &a, &b, NULL };
			CHECK(filter_eval(&f, values) == holds(&r, pk, rk));
		}
		key_ranges_fini(&r);
		arena_fini(&m.arena);
	}
}

TEST(random_sets_intersect_exactly)
{
	dice_seed(5);
	for (int i = 0; i < 5000 && check_failures == 0; i++) {
		struct maker m = { .keys_only = true };
		struct filter f = { .root = random_filter(&m, 1 + dice() % 8) };
		struct filter g = { .root = random_filter(&m, 1 + dice() % 8) };
		struct key_ranges a, b;
		CHECK_ERR(key_ranges_of_filter(&f, &a), ERR_OK);
		CHECK_ERR(key_ranges_of_filter(&g, &b), ERR_OK);
		CHECK_ERR(key_ranges_intersect(&a, &b), ERR_OK);
		key_ranges_fini(&b); /* nothing of it is needed any more */
		CHECK(is_normal(&a));
		CHECK(is_exact(join(&m, FILTER_AND, f.root, g.root), &a));
		key_ranges_fini(&a);
		arena_fini(&m.arena);
	}
}

/* ---- between ---- */

static bool lies_between(const char *pk, const char *rk, const struct span bound[4])
{
	char mem[6][64];
	struct span k = order(pk, mem[0]), r = order(rk, mem[1]), o[4];
	for (int i = 0; i < 4; i++)
		o[i] = bound[i].p == NULL ? bound[i] : order(bound[i].p, mem[2 + i]);
	if (o[0].p != NULL) {
		int c = span_cmp(k, o[0]);
		if (c < 0 || (c == 0 && o[1].p != NULL && span_cmp(r, o[1]) < 0))
			return false;
	}
	if (o[2].p != NULL) {
		int c = span_cmp(k, o[2]);
		if (c > 0 || (c == 0 && o[3].p != NULL && span_cmp(r, o[3]) > 0))
			return false;
	}
	return true;
}

TEST(between_is_the_order_of_key_pairs)
{
	dice_seed(6);
	for (int i = 0; i < 20000 && check_failures == 0; i++) {
		struct span b[4];
		struct key_ranges r;
		for (int k = 0; k < 4; k++)
			b[k] = dice() % 3 == 0 ? (struct span){ 0 } : span_of(any_literal());
		CHECK_ERR(key_ranges_between(b[0], b[1], b[2], b[3], &r), ERR_OK);
		CHECK(is_normal(&r));
		for (size_t k = 0; k < KEYS * KEYS; k++) {
			const char *pk = keys[k / KEYS], *rk = keys[k % KEYS];
			CHECK(holds(&r, pk, rk) == lies_between(pk, rk, b));
		}
		key_ranges_fini(&r);
	}
}

TEST(between_is_small)
{
	struct key_ranges r;
	CHECK_ERR(
		key_ranges_between(SPAN_LIT("a"), SPAN_LIT("5"), SPAN_LIT("c"), SPAN_LIT("7"), &r),
		ERR_OK);
	CHECK_EQ_INT(r.n, 3);
	key_ranges_fini(&r);
	CHECK_ERR(
		key_ranges_between(SPAN_LIT("a"), SPAN_LIT("5"), SPAN_LIT("a"), SPAN_LIT("5"), &r),
		ERR_OK);
	CHECK_EQ_INT(key_ranges_plan(&r), KEY_PLAN_POINT);
	key_ranges_fini(&r);
	CHECK_ERR(key_ranges_between(
			  SPAN_LIT("b"), (struct span){ 0 }, SPAN_LIT("a"), (struct span){ 0 }, &r),
		ERR_OK);
	CHECK_EQ_INT(key_ranges_plan(&r), KEY_PLAN_NOTHING);
	key_ranges_fini(&r);
	struct span none = { 0 };
	CHECK_ERR(key_ranges_between(none, none, none, none, &r), ERR_OK);
	CHECK_EQ_INT(key_ranges_plan(&r), KEY_PLAN_SCAN);
	key_ranges_fini(&r);
}

/* ---- spans ---- */

TEST(a_span_tells_before_in_and_behind)
{
	struct key_span s = { .lo = SPAN_LIT("b"), .hi = SPAN_LIT("d") };
	CHECK(key_span_compare(&s, SPAN_LIT("a")) < 0);
	CHECK(key_span_compare(&s, SPAN_LIT("b")) == 0);
	CHECK(key_span_compare(&s, SPAN_LIT("d")) == 0);
	CHECK(key_span_compare(&s, SPAN_LIT("da")) > 0);
	s.lo_open = s.hi_open = true;
	CHECK(key_span_compare(&s, SPAN_LIT("b")) < 0);
	CHECK(key_span_compare(&s, SPAN_LIT("ba")) == 0);
	CHECK(key_span_compare(&s, SPAN_LIT("d")) > 0);
	CHECK(!key_span_is_point(&s));
	struct key_span all = { 0 };
	CHECK(key_span_compare(&all, SPAN_LIT("")) == 0);
	CHECK(key_span_compare(&all, SPAN_LIT("\xff")) == 0);
	CHECK(!key_span_is_point(&all));
	struct key_span empty_key = { .hi = SPAN_LIT("") };
	CHECK(key_span_is_point(&empty_key));
	CHECK(key_span_compare(&empty_key, SPAN_LIT("")) == 0);
	CHECK(key_span_compare(&empty_key, SPAN_LIT("a")) > 0);
}

/* ---- plans ---- */

static void parse_ranges(const char *text, struct key_ranges *ret)
{
	struct filter f;
	struct err_detail detail = { 0 };
	CHECK_ERR(filter_parse(span_of(text), &f, &detail), ERR_OK);
	CHECK_ERR(key_ranges_of_filter(&f, ret), ERR_OK);
	filter_fini(&f); /* its literals are not needed any more */
}

static void check_plan(const char *text, const char *plan)
{
	struct key_ranges r;
	parse_ranges(text, &r);
	const char *got = key_plan_name(key_ranges_plan(&r));
	if (strcmp(got, plan) != 0)
		printf("# %s\n", text);
	CHECK_EQ_STR(got, plan);
	key_ranges_fini(&r);
}

TEST(plans_have_their_names)
{
	check_plan("", "table scan");
	check_plan("Age gt 5", "table scan");
	check_plan("Timestamp ge datetime'2020-01-01T00:00:00Z'", "table scan");
	check_plan("PartitionKey eq 'a' and RowKey eq '1'", "point");
	check_plan("PartitionKey eq 'a' and RowKey eq '1' and Age gt 5", "point");
	check_plan("'a' eq PartitionKey and '1' eq RowKey", "point");
	check_plan("PartitionKey eq '' and RowKey eq ''", "point");
	check_plan("PartitionKey le '' and RowKey le ''", "point");
	check_plan("not (PartitionKey ne 'a' or RowKey ne '1')", "point");
	check_plan("PartitionKey eq 'a' and RowKey ge '1' and RowKey le '1'", "point");
	check_plan("PartitionKey eq 'a' and (RowKey eq '1' or RowKey eq '2')", "points");
	check_plan("(PartitionKey eq 'a' and RowKey eq '1') or "
		   "(PartitionKey eq 'b' and RowKey eq '2')",
		"points");
	check_plan("(PartitionKey eq 'a' or PartitionKey eq 'b') and RowKey eq '1'", "points");
	check_plan("PartitionKey eq 'a'", "row range");
	check_plan("PartitionKey eq 'a' and Age gt 5", "row range");
	check_plan("PartitionKey eq 'a' and RowKey gt '1'", "row range");
	check_plan("PartitionKey eq 'a' and RowKey ne '1'", "row range");
	check_plan("PartitionKey eq 'a' and (RowKey eq '1' or Age gt 5)", "row range");
	check_plan("PartitionKey eq 'a' or PartitionKey eq 'b'", "row range");
	check_plan("PartitionKey gt 'a'", "partition range");
	check_plan(
		"PartitionKey ge 'a' and PartitionKey lt 'b' and RowKey eq '1'", "partition range");
	check_plan("PartitionKey ne 'a'", "partition range");
	check_plan("RowKey eq '1'", "partition range");
	check_plan("not (RowKey lt '1')", "partition range");
	check_plan("PartitionKey eq 'a' or RowKey eq '1'", "partition range");
	check_plan("PartitionKey eq 'a' or Age gt 5", "table scan");
	check_plan("PartitionKey ne 'a' or PartitionKey eq 'a'", "table scan");
	check_plan("RowKey le 'm' or RowKey gt 'm'", "table scan");
	check_plan("RowKey ge ''", "table scan");
	check_plan("PartitionKey eq 'a' and PartitionKey eq 'b'", "nothing");
	check_plan("PartitionKey eq 'a' and RowKey lt ''", "nothing");
	check_plan("PartitionKey gt 'b' and PartitionKey lt 'a'", "nothing");
	check_plan("PartitionKey eq 7", "nothing");
	check_plan("PartitionKey gt 7", "nothing");
	check_plan("not (PartitionKey lt 7)", "nothing");
	check_plan("PartitionKey lt 7", "table scan");
	check_plan("PartitionKey ne 7", "table scan");
	check_plan("not (PartitionKey gt 7)", "table scan");
	check_plan("not (Age gt 5)", "table scan");
	check_plan("PartitionKey eq 'a' and not (Age gt 5 and RowKey eq '1')", "row range");
}

TEST(constants_widen_and_empty_a_plan)
{
	check_plan("true", "table scan");
	check_plan("not false", "table scan");
	check_plan("true or PartitionKey eq 'a'", "table scan");
	check_plan("PartitionKey eq 'a' or not false", "table scan");
	check_plan("false", "nothing");
	check_plan("not true", "nothing");
	check_plan("PartitionKey eq 'a' and false", "nothing");
	check_plan("Age gt 5 and false", "nothing");
	check_plan("(false or PartitionKey eq 'a') and (true and RowKey eq '1')", "point");
	check_plan("false or (PartitionKey eq 'a' and RowKey eq '1') or false", "point");
	check_plan("true and PartitionKey eq 'a'", "row range");
	check_plan("false or Age gt 5", "table scan");
}

TEST(a_page_of_the_next_rows_has_two_segments)
{
	struct key_ranges r;
	parse_ranges("(PartitionKey eq 'a' and RowKey gt '5') or PartitionKey gt 'a'", &r);
	REQUIRE(r.n == 2);
	CHECK(key_span_is_point(&r.ranges[0].pk));
	CHECK(span_is(r.ranges[0].rk[0].lo, "5") && r.ranges[0].rk[0].lo_open);
	CHECK(span_is(r.ranges[1].pk.lo, "a") && r.ranges[1].pk.lo_open);
	key_ranges_fini(&r);
}

/* ---- cost ---- */

/* The literals of made filters live as long as the maker. */
static const char *number(struct maker *m, unsigned i)
{
	char text[16];
	struct span s = { text, (size_t)snprintf(text, sizeof(text), "k%06u", i) };
	s = arena_copy(&m->arena, s);
	BUG_ON(s.p == NULL);
	return s.p;
}

static void timed_ranges(const struct filter_node *root, struct key_ranges *ret)
{
	struct filter f = { .root = root };
	uint64_t start = clock_mono_us();
	CHECK_ERR(key_ranges_of_filter(&f, ret), ERR_OK);
	uint64_t us = clock_mono_us() - start;
	printf("# %" PRIu64 " us, %zu segments\n", us, ret->n);
	CHECK(us < 20000000); /* some ms; much more under TSan or valgrind on a busy machine */
	CHECK(is_normal(ret));
}

/* k0 op k1 op ..., built to the left as a parser does, in a shuffled order. */
static const struct filter_node *chain(
	struct maker *m, unsigned slot, enum filter_op op, enum filter_kind kind, unsigned n)
{
	const struct filter_node *f = NULL;
	for (unsigned i = 0; i < n; i++) {
		const struct filter_node *c = compare(m, slot, op, number(m, i * 7919 % n));
		f = f == NULL ? c : join(m, kind, f, c);
	}
	return f;
}

TEST(a_thousand_points_in_a_partition_stay_points)
{
	struct maker m = { 0 };
	struct key_ranges r;
	const struct filter_node *rows = chain(&m, FILTER_SLOT_RK, FILTER_EQ, FILTER_OR, 999);
	timed_ranges(join(&m, FILTER_AND, compare(&m, FILTER_SLOT_PK, FILTER_EQ, "a"), rows), &r);
	CHECK_EQ_INT(key_ranges_plan(&r), KEY_PLAN_POINTS);
	REQUIRE(r.n == 1);
	CHECK_EQ_INT(r.ranges[0].nrk, 999);
	key_ranges_fini(&r);
	timed_ranges(chain(&m, FILTER_SLOT_PK, FILTER_EQ, FILTER_OR, 1000), &r);
	CHECK_EQ_INT(key_ranges_plan(&r), KEY_PLAN_ROW_RANGE);
	CHECK_EQ_INT(r.n, 1000);
	key_ranges_fini(&r);
	timed_ranges(chain(&m, FILTER_SLOT_RK, FILTER_NE, FILTER_AND, 1000), &r);
	REQUIRE(r.n == 1);
	CHECK_EQ_INT(r.ranges[0].nrk, 1001);
	key_ranges_fini(&r);
	arena_fini(&m.arena);
}

TEST(five_hundred_pairs_stay_points)
{
	struct maker m = { 0 };
	struct key_ranges r;
	const struct filter_node *f = NULL;
	for (unsigned i = 0; i < 500; i++) {
		const struct filter_node *pair = join(&m, FILTER_AND,
			compare(&m, FILTER_SLOT_PK, FILTER_EQ, number(&m, i * 37 % 500)),
			compare(&m, FILTER_SLOT_RK, FILTER_EQ, number(&m, i)));
		f = f == NULL ? pair : join(&m, FILTER_OR, f, pair);
	}
	timed_ranges(f, &r);
	CHECK_EQ_INT(key_ranges_plan(&r), KEY_PLAN_POINTS);
	CHECK_EQ_INT(r.n, 500);
	key_ranges_fini(&r);
	arena_fini(&m.arena);
}

TEST(a_grid_shares_its_rows)
{
	struct maker m = { 0 };
	struct key_ranges r;
	timed_ranges(join(&m, FILTER_AND, chain(&m, FILTER_SLOT_PK, FILTER_EQ, FILTER_OR, 500),
			     chain(&m, FILTER_SLOT_RK, FILTER_EQ, FILTER_OR, 500)),
		&r);
	CHECK_EQ_INT(key_ranges_plan(&r), KEY_PLAN_POINTS);
	REQUIRE(r.n == 500);
	CHECK(r.ranges[0].rk == r.ranges[499].rk);
	CHECK_EQ_INT(r.ranges[0].nrk, 500);
	key_ranges_fini(&r);
	arena_fini(&m.arena);
}

/* (PK ge k0 and RK eq k0) or (PK ge k1 and RK eq k1) ...: n * n / 2 spans if it were
 * written out. */
static const struct filter_node *staircase(struct maker *m, unsigned n)
{
	const struct filter_node *f = NULL;
	for (unsigned i = 0; i < n; i++) {
		const struct filter_node *step = join(m, FILTER_AND,
			compare(m, FILTER_SLOT_PK, FILTER_GE, number(m, i + 10)),
			compare(m, FILTER_SLOT_RK, FILTER_EQ, number(m, i + 10)));
		f = f == NULL ? step : join(m, FILTER_OR, f, step);
	}
	return f;
}

TEST(a_staircase_becomes_its_box_and_stays_a_superset)
{
	struct maker m = { 0 };
	struct key_ranges r;
	const struct filter_node *f = staircase(&m, 500);
	timed_ranges(f, &r);
	for (unsigned i = 0; i < 520; i += 3) {
		for (unsigned j = 0; j < 520; j += 3) {
			const char *pk = number(&m, i), *rk = number(&m, j);
			CHECK(holds(&r, pk, rk) || !can_be(f, true, pk, rk));
		}
	}
	/* The bounds are still there. */
	CHECK(!holds(&r, "k000001", "k000100") && !holds(&r, "k000100", "k000001"));
	key_ranges_fini(&r);
	timed_ranges(join(&m, FILTER_AND, staircase(&m, 450),
			     compare(&m, FILTER_SLOT_PK, FILTER_EQ, "k000100")),
		&r);
	CHECK_EQ_INT(key_ranges_plan(&r), KEY_PLAN_ROW_RANGE);
	key_ranges_fini(&r);
	arena_fini(&m.arena);
}

TEST(a_small_staircase_is_exact)
{
	struct maker m = { 0 };
	struct key_ranges r;
	const struct filter_node *f = staircase(&m, 60);
	timed_ranges(f, &r);
	for (unsigned i = 0; i < 80 * 80; i++) {
		const char *pk = number(&m, i / 80), *rk = number(&m, i % 80);
		CHECK(holds(&r, pk, rk) == can_be(f, true, pk, rk));
	}
	key_ranges_fini(&r);
	arena_fini(&m.arena);
}

/* ((s1 or p2) and p3 or p4) and ...: each step goes over all of what is there. */
TEST(deep_nesting_is_bounded)
{
	struct maker m = { 0 };
	struct key_ranges r;
	const struct filter_node *f = staircase(&m, 100);
	for (unsigned i = 0; i < 200; i++) {
		bool unite = i % 2 == 0;
		const struct filter_node *c =
			compare(&m, i % 4 < 2 ? FILTER_SLOT_PK : FILTER_SLOT_RK,
				unite ? FILTER_EQ : FILTER_NE, number(&m, i));
		f = join(&m, unite ? FILTER_OR : FILTER_AND, f, c);
		if (i % 3 == 0)
			f = join(&m, FILTER_NOT, join(&m, FILTER_NOT, f, NULL), NULL);
	}
	timed_ranges(f, &r);
	for (unsigned i = 0; i < 220 * 220; i += 7) {
		const char *pk = number(&m, i / 220), *rk = number(&m, i % 220);
		CHECK(holds(&r, pk, rk) || !can_be(f, true, pk, rk));
	}
	key_ranges_fini(&r);
	arena_fini(&m.arena);
}

/* The parser's chains lean to the right.  This one would overflow any stack. */
TEST(a_chain_is_walked_without_recursion)
{
	struct maker m = { 0 };
	struct key_ranges r;
	const struct filter_node *f = compare(&m, FILTER_SLOT_PK, FILTER_EQ, "b");
	for (int i = 0; i < 500000; i++)
		f = join(&m, FILTER_OR, compare(&m, FILTER_SLOT_PK, FILTER_EQ, "a"), f);
	timed_ranges(f, &r);
	CHECK(holds(&r, "a", "") && holds(&r, "b", "") && !holds(&r, "c", ""));
	key_ranges_fini(&r);
	arena_fini(&m.arena);
}

TEST(literals_longer_than_any_key_still_have_their_place)
{
	struct maker m = { 0 };
	char big[5000];
	memset(big, 'm', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	static const enum filter_op ops[] = { FILTER_EQ, FILTER_NE, FILTER_GT, FILTER_LT, FILTER_GE,
		FILTER_LE };
	char legal[LIMIT_KEY_UNITS + 1];
	memset(legal, 'm', LIMIT_KEY_UNITS);
	legal[LIMIT_KEY_UNITS] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		struct filter f = { .root = compare(&m, FILTER_SLOT_RK, ops[i], big) };
		struct key_ranges r;
		CHECK_ERR(key_ranges_of_filter(&f, &r), ERR_OK);
		CHECK(key_ranges_hold(&r, SPAN_LIT("p"), span_of(legal)) ==
			result(ops[i], strcmp(legal, big)));
		CHECK(key_ranges_hold(&r, SPAN_LIT("p"), SPAN_LIT("n")) ==
			result(ops[i], strcmp("n", big)));
		key_ranges_fini(&r);
	}
	arena_fini(&m.arena);
}

TEST(all_is_a_scan)
{
	struct key_ranges r;
	CHECK_ERR(key_ranges_all(&r), ERR_OK);
	CHECK_EQ_INT(key_ranges_plan(&r), KEY_PLAN_SCAN);
	CHECK(holds(&r, "", "") && holds(&r, "c", "\xef\xbf\xbd"));
	key_ranges_fini(&r);
}

RUN_TESTS(T(random_filters_of_keys_give_exactly_their_keys),
	T(random_filters_give_exactly_the_keys_that_can_match), T(big_random_filters_do_too),
	T(the_evaluator_agrees), T(random_sets_intersect_exactly),
	T(between_is_the_order_of_key_pairs), T(between_is_small),
	T(a_span_tells_before_in_and_behind), T(plans_have_their_names),
	T(constants_widen_and_empty_a_plan), T(a_page_of_the_next_rows_has_two_segments),
	T(a_thousand_points_in_a_partition_stay_points), T(five_hundred_pairs_stay_points),
	T(a_grid_shares_its_rows), T(a_staircase_becomes_its_box_and_stays_a_superset),
	T(a_small_staircase_is_exact), T(deep_nesting_is_bounded),
	T(a_chain_is_walked_without_recursion),
	T(literals_longer_than_any_key_still_have_their_place), T(all_is_a_scan))
