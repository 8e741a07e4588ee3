/* SPDX-License-Identifier: MIT
 * A part is cut first and decoded then, so that only a literal '&' separates.  Quotes count in both
 * forms, ' and %27, as in the filter. */
#include "service/query/row_query.h"

#include "base/text.h"
#include "codec/uri.h"

/* For printf's "%.*s". */
static int shown(struct span s)
{
	return (int)(s.n < 100 ? s.n : utf8_valid_prefix(span_make(s.p, 100)));
}

static const struct {
	const char *suffix;
	enum row_form form;
} suffixes[] = {
	{ ".count", ROW_FORM_COUNT },
	{ ".csv", ROW_FORM_CSV },
	{ ".explain", ROW_FORM_EXPLAIN },
	{ ".json", ROW_FORM_JSON },
	{ ".ndjson", ROW_FORM_NDJSON },
};

/* Options never end in a suffix: a dot occurs only in numbers and quotes. */
static enum row_form take_suffix(struct span *text)
{
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		struct span suffix = span_of(suffixes[i].suffix);
		if (!span_ends(*text, suffix))
			continue;
		text->n -= suffix.n;
		return suffixes[i].form;
	}
	return ROW_FORM_NONE;
}

/* Takes the text up to the next '&' outside of quotes, and the '&'. */
static struct span take_piece(struct span *text)
{
	bool quoted = false;
	size_t i = 0;
	for (; i < text->n && (quoted || text->p[i] != '&'); i++)
		if (text->p[i] == '\'' ||
			span_starts(span_make(text->p + i, text->n - i), SPAN_LIT("%27")))
			quoted = !quoted;
	struct span piece = { text->p, i };
	size_t taken = i < text->n ? i + 1 : i;
	*text = span_make(text->p + taken, text->n - taken);
	return piece;
}

enum option {
	OPTION_FILTER,
	OPTION_SELECT,
	OPTION_TOP,
	OPTION_COUNT_
};

static const char *const names[OPTION_COUNT_] = { "filter", "select", "top" };

/* Splits the name off if the part looks like an option, known or not.  A filter has blanks or
 * quotes before any '='. */
static bool split_name(struct span piece, struct span *ret_name, struct span *ret_value)
{
	const char *equals = memchr(piece.p, '=', piece.n);
	if (equals == NULL)
		return false;
	struct span name = { piece.p, (size_t)(equals - piece.p) };
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] == ' ' || name.p[i] == '\'' || name.p[i] == '(')
			return false;
	*ret_name = name;
	*ret_value = span_make(equals + 1, piece.n - name.n - 1);
	return true;
}

static enum err find_option(struct span name, enum option *ret, struct err_detail *detail)
{
	struct span plain = name;
	if (span_starts(name, SPAN_LIT("$")))
		plain = span_make(name.p + 1, name.n - 1);
	for (size_t i = 0; i < OPTION_COUNT_; i++)
		if (span_is(plain, names[i])) {
			*ret = (enum option)i;
			return ERR_OK;
		}
	return err_set(detail, ERR_INVALID_INPUT,
		"There is no option '%.*s'; there are filter, select and top.", shown(name),
		name.p);
}

static enum err read_filter(struct span text, struct filter *ret, struct err_detail *detail)
{
	struct err_detail why = { 0 };
	enum err e = filter_parse(text, ret, &why);
	if (e == ERR_NOT_SUPPORTED)
		return err_set(detail, ERR_INVALID_INPUT,
			"Position %zu in '%.*s': filters support neither functions nor arithmetic, "
			"and compare a property only with a literal.",
			utf16_len(span_make(text.p, why.offset)), shown(text), text.p);
	why.line = 0; /* it is one line */
	if (e != ERR_OK && detail != NULL)
		*detail = why;
	return e;
}

static enum err read_top(struct span text, uint64_t *ret, struct err_detail *detail)
{
	if (text_to_u64(text, ret) && *ret > 0)
		return ERR_OK;
	return err_set(detail, ERR_INVALID_INPUT,
		"top is a number of rows, at least 1, not '%.*s'.", shown(text), text.p);
}

static enum err read_option(
	struct row_query *q, enum option option, struct span value, struct err_detail *detail)
{
	switch (option) {
	case OPTION_FILTER:
		return read_filter(value, &q->filter, detail);
	case OPTION_SELECT:
		return selection_parse(value, &q->arena, &q->select, detail);
	case OPTION_TOP:
		return read_top(value, &q->top, detail);
	case OPTION_COUNT_:
		break;
	}
	return ERR_INVALID_INPUT;
}

static enum err read_piece(
	struct row_query *q, struct span raw, bool first, unsigned *seen, struct err_detail *detail)
{
	struct span piece, name, value;
	enum option option = OPTION_FILTER;
	enum err e = percent_decode(raw, false, &q->arena, &piece, detail);
	if (e != ERR_OK)
		return e;
	value = piece;
	if (split_name(piece, &name, &value)) {
		e = find_option(name, &option, detail);
	} else if (!first) {
		e = err_set(detail, ERR_INVALID_INPUT, "'%.*s' is not an option: it has no name.",
			shown(piece), piece.p);
	}
	if (e == ERR_OK && (*seen & 1u << option) != 0)
		e = err_set(detail, ERR_INVALID_INPUT, "The option '%s' is given twice.",
			names[option]);
	*seen |= 1u << option;
	return e == ERR_OK ? read_option(q, option, value, detail) : e;
}

enum err row_query_parse(struct span text, struct row_query *ret, struct err_detail *detail)
{
	struct arena arena = { 0 };
	struct span rest = arena_copy(&arena, text);
	enum err e = rest.p != NULL ? ERR_OK : ERR_NO_MEMORY;
	unsigned seen = 0;
	*ret = (struct row_query){ .select = SELECTION_ALL, .arena = arena };
	if (e == ERR_OK)
		ret->form = take_suffix(&rest);
	bool first = true;
	while (e == ERR_OK && rest.n > 0) {
		struct span piece = take_piece(&rest);
		if (piece.n == 0)
			continue;
		e = read_piece(ret, piece, first, &seen, detail);
		first = false;
	}
	return e;
}

enum err row_query_set(
	struct row_query *q, const char *name, const char *value, struct err_detail *detail)
{
	enum option option;
	if (value == NULL)
		return ERR_OK;
	struct span text = arena_copy(&q->arena, span_of(value));
	if (text.p == NULL)
		return ERR_NO_MEMORY;
	enum err e = find_option(span_of(name), &option, detail);
	return e == ERR_OK ? read_option(q, option, text, detail) : e;
}

void row_query_fini(struct row_query *q)
{
	filter_fini(&q->filter);
	arena_fini(&q->arena);
	*q = (struct row_query){ 0 };
}
