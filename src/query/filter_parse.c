/* SPDX-License-Identifier: MIT
 * A recursive-descent parser.  The recursion is limited by FILTER_DEPTH_MAX; and/or chains are
 * loops.  It reports the leftmost error.
 *
 * It reports operations that the service does not implement with their own error.  It recognizes
 * them by one word or parenthesis and stops there. */
#include "base/text.h"
#include "model/names.h"
#include "query/filter.h"
#include "query/filter_hint.h"
#include "query/filter_lex.h"
#include "query/filter_names.h"

#include <stdlib.h>

/* A comparison gets its slot once all names are known. */
struct comparison {
	struct filter_node node;
	struct span name; /* borrowed from the text */
	struct comparison *next;
};

struct parser {
	struct filter_lexer lexer;
	struct filter_token token; /* the next token */
	struct arena *arena;
	struct comparison *comparisons;
	size_t nleaves;
	unsigned depth;
	bool fold;
	struct err_detail *detail;
};

struct operand {
	bool is_literal;
	struct span name;
	struct value literal;
};

/* Bytes of the filter that a message quotes: the whole message must fit an err_detail. */
#define SHOWN_MAX 200

static enum err syntax_error(struct parser *p)
{
	char hint_text[80];
	struct buf hint = { .data = hint_text, .cap = sizeof(hint_text), .limit = 79 };
	struct span text = p->lexer.text;
	size_t shown = text.n;

	if (shown > SHOWN_MAX)
		shown = utf8_valid_prefix(span_make(text.p, SHOWN_MAX));
	hint_text[0] = '\0';
	filter_hint(p->token.text, &hint);
	/* The service counts UTF-16 units. */
	return err_set_at(p->detail, ERR_INVALID_INPUT, text.p, p->token.end,
		"Syntax error at position %zu in '%.*s%s'.%s",
		utf16_len(span_make(text.p, p->token.end)), (int)shown, text.p,
		shown < text.n ? "..." : "", hint_text);
}

static enum err null_error(struct parser *p)
{
	return err_set_at(p->detail, ERR_INVALID_INPUT, p->lexer.text.p, p->token.end,
		"Position %zu: a filter cannot compare with null. No property is null; a row that "
		"lacks a property meets no comparison of it.",
		utf16_len(span_make(p->lexer.text.p, p->token.end)));
}

static enum err not_supported(struct parser *p)
{
	return err_set_at(p->detail, ERR_NOT_SUPPORTED, p->lexer.text.p, p->token.end, "%s",
		err_text(ERR_NOT_SUPPORTED));
}

static enum err advance(struct parser *p)
{
	return filter_lex_next(&p->lexer, &p->token);
}

static bool is_word(const struct parser *p, const char *word)
{
	return p->token.kind == FILTER_TOKEN_WORD && span_is(p->token.text, word);
}

static bool is_arithmetic(const struct parser *p)
{
	static const char *const words[] = { "add", "sub", "mul", "div", "mod" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (is_word(p, words[i]))
			return true;
	}
	return false;
}

static bool is_op(const struct parser *p, enum filter_op *ret)
{
	static const char *const words[] = {
		[FILTER_EQ] = "eq",
		[FILTER_NE] = "ne",
		[FILTER_GT] = "gt",
		[FILTER_GE] = "ge",
		[FILTER_LT] = "lt",
		[FILTER_LE] = "le",
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (is_word(p, words[i])) {
			*ret = (enum filter_op)i;
			return true;
		}
	}
	return false;
}

static enum filter_op mirror(enum filter_op op)
{
	switch (op) {
	case FILTER_GT:
		return FILTER_LT;
	case FILTER_GE:
		return FILTER_LE;
	case FILTER_LT:
		return FILTER_GT;
	case FILTER_LE:
		return FILTER_GE;
	case FILTER_EQ:
	case FILTER_NE:
		break;
	}
	return op;
}

static enum err take_operand(struct parser *p, struct operand *ret)
{
	bool is_name = p->token.kind == FILTER_TOKEN_WORD && !is_word(p, "not");
	enum err e;

	if (p->token.kind == FILTER_TOKEN_NULL)
		return null_error(p);
	if (!is_name && p->token.kind != FILTER_TOKEN_LITERAL)
		return syntax_error(p);
	*ret = (struct operand){
		.is_literal = !is_name,
		.name = p->token.text,
		.literal = p->token.value,
	};
	e = advance(p);
	if (e != ERR_OK)
		return e;
	if (is_name && p->token.kind == FILTER_TOKEN_OPEN)
		return not_supported(p); /* a function call */
	return is_arithmetic(p) ? not_supported(p) : ERR_OK;
}

/* Checks the limit and counts a comparison or a constant. */
static enum err count_leaf(struct parser *p)
{
	if (p->nleaves == FILTER_COMPARISONS_MAX)
		return err_set(p->detail, ERR_INVALID_INPUT,
			"The filter has more than %d comparisons.", FILTER_COMPARISONS_MAX);
	p->nleaves++;
	return ERR_OK;
}

static struct filter_node *add_node(struct parser *p, enum filter_kind kind)
{
	struct filter_node *n = arena_alloc(p->arena, sizeof(*n));

	if (n != NULL)
		*n = (struct filter_node){ .kind = kind };
	return n;
}

static enum err add_constant(
	struct parser *p, const struct value *literal, const struct filter_node **ret)
{
	struct filter_node *n;
	enum err e = count_leaf(p);

	if (e != ERR_OK)
		return e;
	n = add_node(p, FILTER_CONSTANT);
	if (n == NULL)
		return ERR_NO_MEMORY;
	n->literal = *literal;
	*ret = n;
	return ERR_OK;
}

static enum err add_comparison(struct parser *p, struct span name, enum filter_op op,
	const struct value *literal, const struct filter_node **ret)
{
	struct comparison *c;
	enum err e = count_leaf(p);

	if (e != ERR_OK)
		return e;
	c = arena_alloc(p->arena, sizeof(*c));
	if (c == NULL)
		return ERR_NO_MEMORY;
	*c = (struct comparison){
		.node = { .kind = FILTER_COMPARE, .op = op, .literal = *literal },
		.name = name,
		.next = p->comparisons,
	};
	p->comparisons = c;
	*ret = &c->node;
	return ERR_OK;
}

/* Adds an operand that stands alone. */
static enum err add_bare(
	struct parser *p, const struct operand *operand, const struct filter_node **ret)
{
	static const struct value yes = { .type = EDM_BOOLEAN, .boolean = true };

	if (!operand->is_literal)
		return add_comparison(p, operand->name, FILTER_EQ, &yes, ret);
	if (operand->literal.type == EDM_BOOLEAN)
		return add_constant(p, &operand->literal, ret);
	return syntax_error(p);
}

static enum err take_comparison(struct parser *p, const struct filter_node **ret)
{
	struct operand left, right;
	enum filter_op op;
	enum err e = take_operand(p, &left);

	if (e != ERR_OK)
		return e;
	if (!is_op(p, &op))
		return add_bare(p, &left, ret);
	e = advance(p);
	if (e == ERR_OK)
		e = take_operand(p, &right);
	if (e != ERR_OK)
		return e;
	if (left.is_literal == right.is_literal)
		return not_supported(p);
	if (left.is_literal)
		return add_comparison(p, right.name, mirror(op), &left.literal, ret);
	return add_comparison(p, left.name, op, &right.literal, ret);
}

/* Also takes the token that opens the nesting. */
static enum err go_deeper(struct parser *p)
{
	if (p->depth == FILTER_DEPTH_MAX)
		return err_set(p->detail, ERR_INVALID_INPUT,
			"The filter nests more than %d parentheses and nots.", FILTER_DEPTH_MAX);
	p->depth++;
	return advance(p);
}

static enum err take_chain(struct parser *p, enum filter_kind kind, const struct filter_node **ret);

static enum err take_group(struct parser *p, const struct filter_node **ret)
{
	enum err e = go_deeper(p);

	if (e == ERR_OK)
		e = take_chain(p, FILTER_OR, ret);
	if (e != ERR_OK)
		return e;
	if (p->token.kind != FILTER_TOKEN_CLOSE)
		return syntax_error(p);
	p->depth--;
	return advance(p);
}

static enum err take_unary(struct parser *p, const struct filter_node **ret)
{
	struct filter_node *n;
	enum err e;

	if (p->token.kind == FILTER_TOKEN_OPEN)
		return take_group(p, ret);
	if (!is_word(p, "not"))
		return take_comparison(p, ret);
	n = add_node(p, FILTER_NOT);
	if (n == NULL)
		return ERR_NO_MEMORY;
	e = go_deeper(p);
	if (e == ERR_OK)
		e = take_unary(p, &n->left);
	p->depth--;
	*ret = n;
	return e;
}

/* Takes a chain of `or` whose operands are chains of `and`, or a chain of `and`.  `a and b and c`
 * becomes `a and (b and c)`. */
static enum err take_chain(struct parser *p, enum filter_kind kind, const struct filter_node **ret)
{
	const char *word = kind == FILTER_OR ? "or" : "and";

	for (;;) {
		const struct filter_node *part;
		struct filter_node *n;
		enum err e =
			kind == FILTER_OR ? take_chain(p, FILTER_AND, &part) : take_unary(p, &part);
		if (e != ERR_OK)
			return e;
		if (!is_word(p, word)) {
			*ret = part;
			return ERR_OK;
		}
		n = add_node(p, kind);
		if (n == NULL)
			return ERR_NO_MEMORY;
		n->left = part;
		*ret = n;
		ret = &n->right;
		e = advance(p);
		if (e != ERR_OK)
			return e;
	}
}

/* Collects the distinct names without a fixed slot, in order.  They still borrow from the text. */
static void collect_names(const struct parser *p, struct filter *f)
{
	struct span *named = f->names + FILTER_SLOT_NAMED;
	size_t n = 0, distinct = 0;

	for (const struct comparison *c = p->comparisons; c != NULL; c = c->next) {
		if (filter_name_fixed(c->name) == FILTER_SLOT_NAMED)
			named[n++] = c->name;
	}
	qsort(named, n, sizeof(*named), filter_name_order);
	for (size_t i = 0; i < n; i++) {
		if (distinct == 0 || !span_eq(named[distinct - 1], named[i]))
			named[distinct++] = named[i];
	}
	f->nslots = (unsigned)(FILTER_SLOT_NAMED + distinct);
}

static enum err number_names(struct parser *p, struct filter *f)
{
	f->names = arena_alloc(&f->arena, (FILTER_SLOT_NAMED + p->nleaves) * sizeof(*f->names));
	if (f->names == NULL)
		return ERR_NO_MEMORY;
	f->names[FILTER_SLOT_PK] = SPAN_LIT("PartitionKey");
	f->names[FILTER_SLOT_RK] = SPAN_LIT("RowKey");
	f->names[FILTER_SLOT_TIMESTAMP] = SPAN_LIT("Timestamp");
	collect_names(p, f);
	for (unsigned slot = FILTER_SLOT_NAMED; slot < f->nslots; slot++) {
		f->names[slot] = arena_copy(&f->arena, f->names[slot]);
		if (f->names[slot].p == NULL)
			return ERR_NO_MEMORY;
	}
	for (struct comparison *c = p->comparisons; c != NULL; c = c->next)
		c->node.slot = filter_name_find(f, c->name);
	return ERR_OK;
}

static enum err fold_literals(struct parser *p)
{
	for (struct comparison *c = p->comparisons; c != NULL; c = c->next) {
		struct span *s = &c->node.literal.bytes;
		if (c->node.literal.type != EDM_STRING || s->n == 0)
			continue;
		char *folded = arena_alloc(p->arena, s->n);
		if (folded == NULL)
			return ERR_NO_MEMORY;
		table_name_fold(*s, folded);
		s->p = folded;
	}
	return ERR_OK;
}

static enum err parse(struct parser *p, struct filter *f)
{
	const struct filter_node *root = NULL;
	enum err e = advance(p);

	if (e == ERR_OK && p->token.kind != FILTER_TOKEN_END)
		e = take_chain(p, FILTER_OR, &root);
	if (e == ERR_OK && p->token.kind != FILTER_TOKEN_END)
		e = syntax_error(p);
	if (e == ERR_OK)
		e = number_names(p, f);
	if (e == ERR_OK && p->fold)
		e = fold_literals(p);
	if (e == ERR_OK)
		f->root = root;
	return e;
}

static enum err parse_text(
	struct span text, bool fold, struct filter *ret, struct err_detail *detail)
{
	struct parser p = {
		.fold = fold,
		.lexer = { .text = text, .arena = &ret->arena },
		.arena = &ret->arena,
		.detail = detail,
	};
	size_t valid = utf8_valid_prefix(text);

	*ret = (struct filter){ 0 };
	if (valid < text.n)
		return err_set_at(detail, ERR_INVALID_INPUT, text.p, valid,
			"The filter is not valid UTF-8 at position %zu.", valid);
	return parse(&p, ret);
}

enum err filter_parse(struct span text, struct filter *ret, struct err_detail *detail)
{
	return parse_text(text, false, ret, detail);
}

enum err filter_parse_folded(struct span text, struct filter *ret, struct err_detail *detail)
{
	return parse_text(text, true, ret, detail);
}

void filter_fini(struct filter *f)
{
	arena_fini(&f->arena);
	*f = (struct filter){ 0 };
}
