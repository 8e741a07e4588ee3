/* SPDX-License-Identifier: MIT
 * No bearer token gets in for lack of memory: each allocation of a check fails once.  A good token
 * is then accepted or refused; a forged one is never accepted.  The next check of either is as before.
 * jansson reports some failed allocations as errors of syntax, so the error may be either. */
#include "calls.h"
#include "unit/oauth_setup.h"

#include <errno.h>

#define MOST 5000 /* allocations of one check */

static enum err check(struct oauth *o, const struct buf *token)
{
	struct bearer b;
	enum err e = oauth_check(o, buf_span(token), &table, &b, NULL);
	CHECK(e == ERR_OK || b.grants.roles == 0);
	return e;
}

static void sweep(struct oauth *o, const struct buf *token, enum err want)
{
	CHECK_ERR(check(o, token), want); /* what OpenSSL makes once is made here */
	for (unsigned n = 1; n < MOST; n++) {
		calls_strike(CALLS_FAIL, CALLS_MEMORY, true, n, ENOMEM);
		enum err e = check(o, token);
		uint32_t struck = calls_now()->struck;
		calls_stop();
		CHECK(e == want || e == ERR_NO_MEMORY || e == ERR_AUTH_BEARER);
		CHECK_ERR(check(o, token), want);
		if (struck == 0)
			return;
	}
	CHECK(false);
}

TEST(no_token_gets_in_for_lack_of_memory)
{
	write_keys("\"assignments\":[{\"sub\":\"s\",\"role\":\"Storage Table Data Reader\"}],");
	struct oauth *o = open_oauth(how);
	for (int i = 0; i < 2; i++) {
		struct buf token = BUF_INIT(1 << 20);
		jwt_sign(i == 0 ? rsa : curve, i == 0 ? RS256 : ES256, GOOD, &token);
		sweep(o, &token, ERR_OK);
		token.data[token.len - 10] = token.data[token.len - 10] == 'A' ? 'B' : 'A';
		sweep(o, &token, ERR_AUTH_BEARER);
		buf_fini(&token);
	}
	oauth_close(o);
}

TEST(a_file_of_keys_is_read_whole_or_refused)
{
	write_keys("");
	for (unsigned n = 1; n < MOST; n++) {
		struct oauth *o = NULL;
		calls_strike(CALLS_FAIL, CALLS_MEMORY, true, n, ENOMEM);
		enum err e = oauth_open(how, &o, NULL);
		uint32_t struck = calls_now()->struck;
		calls_stop();
		CHECK(e == ERR_OK || e == ERR_NO_MEMORY || e == ERR_INVALID_INPUT);
		CHECK((e == ERR_OK) == (o != NULL));
		oauth_close(o);
		if (struck == 0)
			return;
	}
	CHECK(false);
}

int main(void)
{
	static const struct check_test tests[] = { T(no_token_gets_in_for_lack_of_memory),
		T(a_file_of_keys_is_read_whole_or_refused) };
	return run_with_keys(tests, ARRAY_LEN(tests));
}
