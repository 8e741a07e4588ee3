/* SPDX-License-Identifier: MIT
 * The tokens of $filter; for filter_parse.c only.  A token ends at a blank, a parenthesis
 * or the end of the text, so that what is glued together is one token, and mostly a bad one.
 * Keywords are words here: what a word means depends on where it stands. */
#ifndef QUERY_FILTER_LEX_H
#define QUERY_FILTER_LEX_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"
#include "model/value.h"

enum filter_token_kind {
	FILTER_TOKEN_END,
	FILTER_TOKEN_OPEN,    /* ( */
	FILTER_TOKEN_CLOSE,   /* ) */
	FILTER_TOKEN_WORD,    /* a property name, an operator */
	FILTER_TOKEN_LITERAL, /* value is set */
	FILTER_TOKEN_NULL,    /* null, which is never valid */
	FILTER_TOKEN_BAD,
};

struct filter_token {
	enum filter_token_kind kind;
	struct span text;   /* in the lexer's text */
	size_t end;         /* offset just past it */
	struct value value; /* bytes in the arena */
};

struct filter_lexer {
	struct span text; /* valid UTF-8 */
	size_t pos;
	struct arena *arena;
};

/* ERR_NO_MEMORY; a text that is no token gives FILTER_TOKEN_BAD. */
enum err filter_lex_next(struct filter_lexer *l, struct filter_token *ret);

#endif
