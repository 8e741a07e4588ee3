/* SPDX-License-Identifier: MIT
 * Bearer tokens and key sets.  The input is a token, a key set, and, cut at its first line end, the
 * header and the claims of a token, so that the fuzzer reaches the claims without base64. */
#include "base/crypto.h"
#include "codec/json_read.h"
#include "codec/jwk_set.h"
#include "codec/jwt.h"
#include "fuzz.h"
#include "rest/tokens/oauth.h"

#include <string.h>

#define NOW 1700000000

static void key_set(struct span text)
{
	struct jwk_set *s = NULL;
	struct err_detail why = { 0 };
	enum err e = jwk_set_read(text, &s, &why);
	MUST((e == ERR_OK) == (s != NULL));
	MUST(e == ERR_OK || (e == ERR_INVALID_INPUT && why.text[0] != '\0'));
	jwk_set_free(s);
}

/* Checks that an accepted token has all that makes it good. */
static void check_good(struct span token, const struct bearer *b)
{
	struct jwt t;
	int64_t start, end;
	MUST(jwt_read(token, &t, NULL) == ERR_OK);
	MUST(json_read_number(t.claims, "nbf", &start) && start <= NOW);
	MUST(json_read_number(t.claims, "exp", &end) && end >= NOW);
	MUST(json_read_text(t.claims, "iss").n >= strlen("https://sts.windows.net/"));
	MUST(json_read_count(t.claims, "aud") > 0);
	MUST(b->grants.roles == ROLES_ALL);
	MUST(strlen(b->object) <= OAUTH_NAME_MAX && strlen(b->tenant) <= OAUTH_NAME_MAX);
	MUST(strpbrk(b->object, "\n<>&\" ") == NULL && strpbrk(b->tenant, "\n<>&\" ") == NULL);
	jwt_fini(&t);
}

static void token(struct span text)
{
	static const struct oauth_facts facts = { "table", 't', "acct", "t", NOW };
	struct oauth *o = NULL;
	struct err_detail why = { 0 };
	struct bearer b;
	MUST(oauth_open("basic", &o, NULL) == ERR_OK);
	enum err e = oauth_check(o, text, &facts, &b, &why);
	if (e == ERR_OK)
		check_good(text, &b);
	else
		MUST(e == ERR_AUTH_BEARER && why.text[0] != '\0' && b.grants.roles == 0);
	oauth_close(o);
}

/* Appends the bytes as base64url, as nothing in src encodes it. */
static void encode(struct span bytes, struct buf *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	uint32_t bits = 0;
	unsigned have = 0;
	for (size_t i = 0; i < bytes.n; i++) {
		bits = bits << 8 | (unsigned char)bytes.p[i];
		for (have += 8; have >= 6; have -= 6)
			buf_add_char(out, digits[bits >> (have - 6) & 63]);
	}
	if (have > 0)
		buf_add_char(out, digits[bits << (6 - have) & 63]);
}

static void header_and_claims(struct span text)
{
	struct buf whole = BUF_INIT(1 << 20);
	const char *end = text.n > 0 ? memchr(text.p, '\n', text.n) : NULL;
	if (end == NULL)
		return;
	size_t n = (size_t)(end - text.p);
	encode(span_make(text.p, n), &whole);
	buf_add_char(&whole, '.');
	encode(span_make(end + 1, text.n - n - 1), &whole);
	buf_add_char(&whole, '.');
	if (buf_ok(&whole))
		token(buf_span(&whole));
	buf_fini(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = span_make(data, size);
	key_set(text);
	token(text);
	header_and_claims(text);
	return 0;
}
