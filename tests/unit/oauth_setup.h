/* SPDX-License-Identifier: MIT
 * What the tests of bearer tokens share: three keys, a file of keys, and a check of claims that a key signs. */
#ifndef UNIT_OAUTH_SETUP_H
#define UNIT_OAUTH_SETUP_H

#include "check.h"
#include "jwt_maker.h"
#include "rest/tokens/oauth.h"

#include <stdio.h>
#include <unistd.h>

#define NOW 1700000000
#define RS256 "{\"alg\":\"RS256\",\"kid\":\"r1\"}"
#define ES256 "{\"alg\":\"ES256\",\"kid\":\"e1\"}"
#define GOOD_TIMES "\"iat\":1699999000,\"nbf\":1699999000,\"exp\":1700003600"
#define GOOD_REST "\"iss\":\"https://sts.windows.net/x/\",\"aud\":\"https://storage.azure.com\""
#define GOOD "{" GOOD_TIMES "," GOOD_REST ",\"roles\":[\"Storage Table Data Reader\"]}"

static const struct oauth_facts table = { "table", 't', "acct", "t1", NOW };
static EVP_PKEY *rsa, *rsa2, *curve;
static char path[] = "/tmp/rowfs-oauth.XXXXXX", how[64];

static inline void write_file(const char *text)
{
	FILE *f = fopen(path, "w");
	BUG_ON(f == NULL || fputs(text, f) < 0 || fclose(f) != 0);
}

/* The file has r1 and e1; more: further members. */
static inline void write_keys(const char *more)
{
	struct buf text = BUF_INIT(1 << 20);
	buf_addf(&text, "{%s\"keys\":[", more);
	jwt_add_key(rsa, "r1", ",\"use\":\"sig\"", &text);
	buf_add_str(&text, ",");
	jwt_add_key(curve, "e1", "", &text);
	buf_add_str(&text, "]}");
	write_file(text.data);
	buf_fini(&text);
}

static inline struct oauth *open_oauth(const char *option)
{
	struct oauth *o = NULL;
	struct err_detail why = { 0 };
	CHECK_ERR(oauth_open(option, &o, &why), ERR_OK);
	CHECK_EQ_STR(why.text, "");
	return o;
}

static inline enum err check_text(struct oauth *o, struct span token,
	const struct oauth_facts *facts, struct bearer *ret, const char *wanted)
{
	struct err_detail why = { 0 };
	enum err e = oauth_check(o, token, facts, ret, &why);
	if (e == ERR_OK ? wanted[0] != '\0' : wanted[0] == '\0' || strstr(why.text, wanted) == NULL)
		CHECK_EQ_STR(why.text, wanted);
	CHECK(e == ERR_OK || e == ERR_AUTH_BEARER);
	return e;
}

/* Signs the claims; "" is wanted for a token that is good. */
static inline struct bearer judge(
	struct oauth *o, EVP_PKEY *key, const char *header, const char *claims, const char *wanted)
{
	struct buf token = BUF_INIT(1 << 20);
	struct bearer b;
	jwt_sign(key, header, claims, &token);
	(void)check_text(o, buf_span(&token), &table, &b, wanted);
	buf_fini(&token);
	return b;
}

/* Runs the tests with new keys and a file of their own. */
static inline int run_with_keys(const struct check_test *tests, size_t n)
{
	int fd = mkstemp(path);
	BUG_ON(fd < 0);
	close(fd);
	snprintf(how, sizeof(how), "jwks:%s", path);
	rsa = EVP_RSA_gen(2048);
	rsa2 = EVP_RSA_gen(2048);
	curve = EVP_EC_gen("P-256");
	int code = check_main(tests, n);
	EVP_PKEY_free(rsa);
	EVP_PKEY_free(rsa2);
	EVP_PKEY_free(curve);
	(void)unlink(path);
	return code;
}

#endif
