/* SPDX-License-Identifier: MIT
 * The tokens of $filter; only for filter_parse.c.  A token ends at a blank, a parenthesis or the
 * end of the text.  Keywords are words here: their position decides their meaning. */
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
	FILTER_TOKEN_WORD,    /* a property name or an operator */
	FILTER_TOKEN_LITERAL, /* value is set */
	FILTER_TOKEN_NULL,    /* null is never valid */
	FILTER_TOKEN_BAD,
};

struct filter_token {
	enum filter_token_kind kind;
	struct span text;   /* borrowed from the lexer's text */
	size_t end;         /* offset behind it */
	struct value value; /* the arena owns its bytes */
};

struct filter_lexer {
	struct span text; /* must be valid UTF-8 */
	size_t pos;
	struct arena *arena;
};

/* Takes the next token.  FILTER_TOKEN_BAD for text that is no token.  ERR_NO_MEMORY. */
enum err filter_lex_next(struct filter_lexer *l, struct filter_token *ret);

#endif
