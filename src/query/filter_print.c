/* SPDX-License-Identifier: MIT
 * Prints a tree.  Extra parentheses could push a filter over the depth limit, so only necessary
 * ones are written. */
#include "codec/edm_text.h"
#include "query/filter.h"

static void put_string(struct span s, struct buf *out)
{
	buf_add_char(out, '\'');
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\'')
			buf_add_char(out, '\'');
		buf_add_char(out, s.p[i]);
	}
	buf_add_char(out, '\'');
}

static void put_binary(struct span s, struct buf *out)
{
	static const char hex[] = "0123456789ABCDEF";

	buf_add_str(out, "X'");
	for (size_t i = 0; i < s.n; i++) {
		buf_add_char(out, hex[(unsigned char)s.p[i] >> 4]);
		buf_add_char(out, hex[(unsigned char)s.p[i] & 15]);
	}
	buf_add_char(out, '\'');
}

static void put_quoted(const char *prefix, const struct value *v, struct buf *out)
{
	buf_add_str(out, prefix);
	buf_add_char(out, '\'');
	edm_text_format(v, out);
	buf_add_char(out, '\'');
}

static void put_literal(const struct value *v, struct buf *out)
{
	switch (v->type) {
	case EDM_STRING:
		put_string(v->bytes, out);
		break;
	case EDM_BOOLEAN:
	case EDM_INT32:
	case EDM_DOUBLE:
		edm_text_format(v, out);
		break;
	case EDM_INT64:
		edm_text_format(v, out);
		buf_add_char(out, 'L');
		break;
	case EDM_DATETIME:
		if (v->ticks < 0) /* stands for all times before 1601 */
			buf_add_str(out, "datetime'1600-12-31T23:59:59.9999999Z'");
		else
			put_quoted("datetime", v, out);
		break;
	case EDM_GUID:
		put_quoted("guid", v, out);
		break;
	case EDM_BINARY:
		put_binary(v->bytes, out);
		break;
	case EDM_COUNT_:
		break;
	}
}

static void put_comparison(const struct filter *f, const struct filter_node *n, struct buf *out)
{
	static const char *const words[] = {
		[FILTER_EQ] = " eq ",
		[FILTER_NE] = " ne ",
		[FILTER_GT] = " gt ",
		[FILTER_GE] = " ge ",
		[FILTER_LT] = " lt ",
		[FILTER_LE] = " le ",
	};

	buf_add_span(out, f->names[n->slot]);
	buf_add_str(out, words[n->op]);
	put_literal(&n->literal, out);
}

static bool is_chain(const struct filter_node *n)
{
	return n->kind == FILTER_AND || n->kind == FILTER_OR;
}

static void put_tree(const struct filter *f, const struct filter_node *n, struct buf *out);

static void put_group(const struct filter *f, const struct filter_node *n, struct buf *out)
{
	buf_add_char(out, '(');
	put_tree(f, n, out);
	buf_add_char(out, ')');
}

/* Prints the left operand of a chain, or the operand of a not, in parentheses where it binds less
 * tightly. */
static void put_part(const struct filter *f, enum filter_kind outer,
	const struct filter_node *inner, struct buf *out)
{
	bool tighter = !is_chain(inner) || (outer == FILTER_OR && inner->kind == FILTER_AND);

	if (tighter)
		put_tree(f, inner, out);
	else
		put_group(f, inner, out);
}

static void put_tree(const struct filter *f, const struct filter_node *n, struct buf *out)
{
	for (; is_chain(n); n = n->right) {
		put_part(f, n->kind, n->left, out);
		buf_add_str(out, n->kind == FILTER_AND ? " and " : " or ");
		if (n->kind == FILTER_AND && n->right->kind == FILTER_OR) {
			put_group(f, n->right, out);
			return;
		}
	}
	if (n->kind == FILTER_NOT) {
		buf_add_str(out, "not ");
		put_part(f, FILTER_NOT, n->left, out);
	} else if (n->kind == FILTER_CONSTANT) {
		put_literal(&n->literal, out);
	} else {
		put_comparison(f, n, out);
	}
}

void filter_print(const struct filter *f, struct buf *out)
{
	if (f->root != NULL)
		put_tree(f, f->root, out);
}
