/* SPDX-License-Identifier: MIT */
#include "query/filter_hint.h"

#include "base/compiler.h"

#include <string.h>
#include <strings.h>

/* A longer operator stands before its own prefix. */
static const struct {
	const char *wrong, *right;
} operators[] = {
	{ "==", "eq" },
	{ "=", "eq" },
	{ "!=", "ne" },
	{ "<>", "ne" },
	{ ">=", "ge" },
	{ ">", "gt" },
	{ "<=", "le" },
	{ "<", "lt" },
	{ "&&", "and" },
	{ "&", "and" },
	{ "||", "or" },
	{ "|", "or" },
	{ "!", "not" },
};

static const char *const keywords[] = { "eq", "ne", "gt", "ge", "lt", "le", "and", "or", "not" };

static bool begins_with(struct span s, const char *word)
{
	return span_starts(s, span_of(word));
}

static bool hint_of_place(struct span rest, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
		if (begins_with(rest, operators[i].wrong)) {
			buf_addf(out, " Use %s instead of %s, with blanks around it.",
				operators[i].right, operators[i].wrong);
			return true;
		}
	}
	if (rest.p[0] == '"') {
		buf_add_str(out, " Write a string in single quotes: 'text'.");
		return true;
	}
	return false;
}

void filter_hint(struct span token, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
		if (token.n == strlen(keywords[i]) &&
			strncasecmp(token.p, keywords[i], token.n) == 0 &&
			!span_is(token, keywords[i])) {
			buf_addf(out, " Use %s, in lower case.", keywords[i]);
			return;
		}
	}
	for (size_t i = 0; i < token.n && token.p[i] != '\''; i++) {
		if (hint_of_place(span_make(token.p + i, token.n - i), out))
			return;
	}
}
