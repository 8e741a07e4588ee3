/* SPDX-License-Identifier: MIT
 * The decoder accepts exactly the tokens that the encoder can write.  So a client's token always
 * yields a valid key. */
#include "query/page_token.h"

#include "base/crypto.h"
#include "base/text.h"
#include "model/key.h"
#include "model/limits.h"

/* Characters of base64 for the longest key. */
#define TEXT_MAX ((LIMIT_KEY_BYTES + 2) / 3 * 4)

/* Replaces the three base64 characters that are unsafe in headers and URLs. */
static char to_token(char c)
{
	return c == '=' ? '-' : c == '+' ? '_' : c == '/' ? '.' : c;
}

/* Returns '\0' for those three characters: a token has none of them. */
static char from_token(char c)
{
	switch (c) {
	case '-':
		return '=';
	case '_':
		return '+';
	case '.':
		return '/';
	case '=':
	case '+':
	case '/':
		return '\0';
	default:
		return c;
	}
}

void page_token_encode(struct span key, struct buf *out)
{
	buf_addf(out, "1!%zu!", (key.n + 2) / 3 * 4);
	size_t at = out->len;
	base64_encode(key, out);
	for (; at < out->len; at++)
		out->data[at] = to_token(out->data[at]);
}

static enum err refuse(struct err_detail *detail)
{
	return err_set(detail, ERR_INVALID_INPUT, "The continuation token is not valid.");
}

/* Takes "1!LEN!" and checks that LEN, without leading zeros, is the length of the rest. */
static bool take_head(struct span token, struct span *ret_text)
{
	size_t at = 2, len = 0;
	if (!span_starts(token, SPAN_LIT("1!")))
		return false;
	for (; at < token.n && token.p[at] >= '0' && token.p[at] <= '9'; at++) {
		len = len * 10 + (size_t)(token.p[at] - '0');
		if (len > TEXT_MAX)
			return false;
	}
	if (at == 2 || at == token.n || token.p[at] != '!' || (token.p[2] == '0' && at > 3))
		return false;
	*ret_text = span_make(token.p + at + 1, token.n - at - 1);
	return ret_text->n == len;
}

enum err page_token_decode(struct span token, struct buf *out, struct err_detail *detail)
{
	char text[TEXT_MAX];
	struct span rest;
	size_t start = out->len;

	if (token.n == 0)
		return ERR_OK;
	if (!take_head(token, &rest))
		return refuse(detail);
	for (size_t i = 0; i < rest.n; i++)
		text[i] = from_token(rest.p[i]);
	if (!buf_reserve(out, LIMIT_KEY_BYTES))
		return ERR_NO_MEMORY;
	if (!base64_decode(span_make(text, rest.n), out))
		return refuse(detail);
	struct span key = span_make(out->data + start, out->len - start);
	return key_check(key, "continuation token", NULL) == ERR_OK ? ERR_OK : refuse(detail);
}
