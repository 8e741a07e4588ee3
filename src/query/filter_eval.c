/* SPDX-License-Identifier: MIT
 * The evaluation has two truth values: a comparison with a missing property is false.  NaN is
 * unordered and unequal.  A value of an incompatible type is less than the literal. */
#include "query/filter.h"

enum order {
	LESS = -1,
	EQUAL = 0,
	GREATER = 1,
	UNORDERED,
};

static enum order order_of(int c)
{
	return c < 0 ? LESS : c > 0 ? GREATER : EQUAL;
}

static enum order order_int64(int64_t a, int64_t b)
{
	return order_of((a > b) - (a < b));
}

static enum order order_double(double a, double b)
{
	if (a < b)
		return LESS;
	if (a > b)
		return GREATER;
	return a == b ? EQUAL : UNORDERED;
}

/* Compares exactly: converting the int64 to double would lose bits. */
static enum order order_double_int64(double a, int64_t b)
{
	static const double limit = 0x1p63;
	int64_t whole;

	if (!(a >= -limit && a < limit))
		return order_double(a, 0); /* outside of int64, or NaN */
	whole = (int64_t)a;
	if (whole != b)
		return order_int64(whole, b);
	return order_double(a - (double)whole, 0);
}

static size_t same_prefix(struct span a, struct span b)
{
	size_t n = a.n < b.n ? a.n : b.n, i = 0;

	while (n - i >= sizeof(uint64_t) && memcmp(a.p + i, b.p + i, sizeof(uint64_t)) == 0)
		i += sizeof(uint64_t);
	while (i < n && a.p[i] == b.p[i])
		i++;
	return i;
}

/* Ranks a lead byte of UTF-8 in the order of UTF-16.  F0 to F4 become surrogates, which come before
 * U+E000 to U+FFFF.  Those begin with EE and EF. */
static int utf16_rank(unsigned char lead)
{
	return lead == 0xee || lead == 0xef ? lead + 0x10 : lead;
}

static enum order order_string(struct span a, struct span b)
{
	size_t i = same_prefix(a, b);

	if (i == a.n || i == b.n)
		return order_of((a.n > b.n) - (a.n < b.n));
	return order_of(utf16_rank((unsigned char)a.p[i]) - utf16_rank((unsigned char)b.p[i]));
}

static enum order order_same_type(const struct value *a, const struct value *b)
{
	switch (a->type) {
	case EDM_STRING:
		return order_string(a->bytes, b->bytes);
	case EDM_BOOLEAN:
		return order_of(a->boolean - b->boolean);
	case EDM_INT32:
		return order_int64(a->int32, b->int32);
	case EDM_INT64:
		return order_int64(a->int64, b->int64);
	case EDM_DOUBLE:
		return order_double(a->dbl, b->dbl);
	case EDM_DATETIME:
		return order_int64(a->ticks, b->ticks);
	case EDM_GUID:
		return order_of(memcmp(a->guid, b->guid, sizeof(a->guid)));
	case EDM_BINARY:
		return order_of(span_cmp(a->bytes, b->bytes));
	case EDM_COUNT_:
		break;
	}
	return UNORDERED;
}

/* Only the literal is widened, to the type of the property.  Other types are LESS, as the service
 * was observed to answer (docs/rest.md). */
static enum order order_values(const struct value *property, const struct value *literal)
{
	if (property->type == literal->type)
		return order_same_type(property, literal);
	if (property->type == EDM_INT64 && literal->type == EDM_INT32)
		return order_int64(property->int64, literal->int32);
	if (property->type == EDM_DOUBLE && literal->type == EDM_INT32)
		return order_double(property->dbl, literal->int32);
	if (property->type == EDM_DOUBLE && literal->type == EDM_INT64)
		return order_double_int64(property->dbl, literal->int64);
	return LESS;
}

static bool is_equal(const struct value *property, const struct value *literal)
{
	if (property->type == EDM_STRING && literal->type == EDM_STRING)
		return span_eq(property->bytes, literal->bytes);
	return order_values(property, literal) == EQUAL;
}

static bool compare(const struct filter_node *n, const struct value *property)
{
	enum order order;

	if (property == NULL)
		return false;
	if (n->op == FILTER_EQ || n->op == FILTER_NE)
		return is_equal(property, &n->literal) == (n->op == FILTER_EQ);
	order = order_values(property, &n->literal);
	switch (n->op) {
	case FILTER_GT:
		return order == GREATER;
	case FILTER_GE:
		return order == GREATER || order == EQUAL;
	case FILTER_LT:
		return order == LESS;
	case FILTER_LE:
		return order == LESS || order == EQUAL;
	case FILTER_EQ:
	case FILTER_NE:
		break;
	}
	return false;
}

/* Chains lean to the right and are walked in a loop.  Only parentheses and nots recurse. */
static bool matches(const struct filter_node *n, const struct value *const *values)
{
	for (; n->kind == FILTER_AND || n->kind == FILTER_OR; n = n->right) {
		if (matches(n->left, values) == (n->kind == FILTER_OR))
			return n->kind == FILTER_OR;
	}
	if (n->kind == FILTER_NOT)
		return !matches(n->left, values);
	return n->kind == FILTER_CONSTANT ? n->literal.boolean : compare(n, values[n->slot]);
}

bool filter_eval(const struct filter *f, const struct value *const *values)
{
	return f->root == NULL || matches(f->root, values);
}
