/* SPDX-License-Identifier: MIT
 * The file of keys for bearer tokens: which are accepted, and that it is read again. */
#include "base/public_key.h"
#include "codec/jwk_set.h"
#include "oauth_setup.h"
#include "rest/tokens/assignments.h"

TEST(a_set_of_one_key_needs_no_kid)
{
	struct buf text = BUF_INIT(1 << 20);
	buf_add_str(&text,
		"{\"keys\":[{\"kty\":\"oct\",\"k\":\"c2VjcmV0\"},"
		"{\"kty\":\"RSA\",\"use\":\"enc\",\"n\":\"!\"},");
	jwt_add_key(rsa, "r1", "", &text);
	buf_add_str(&text, "]}");
	write_file(text.data);
	struct oauth *o = open_oauth(how);
	(void)judge(o, rsa, "{\"alg\":\"RS256\"}", GOOD, "");
	(void)judge(o, rsa, "{\"alg\":\"RS256\",\"kid\":\"other\"}", GOOD, "No key");
	oauth_close(o);
	buf_fini(&text);
}

/* The first byte of x is zero, which PyJWT leaves out: one key of 128 has such a number. */
TEST(a_coordinate_may_lack_its_zeros_in_front)
{
	struct buf x = BUF_INIT(64), y = BUF_INIT(64), signature = BUF_INIT(128);
	struct public_key *key = NULL;
	CHECK(base64url_decode(SPAN_LIT("IbUs7McLxj3EfYO2V5Z4w-qdFMQE8EXPjn2TbIGHsw"), &x));
	CHECK(base64url_decode(SPAN_LIT("Y9Jzkq7LpcGLB9qpEy73WVwvVzTOc1LYB5ZjmlLJOT8"), &y));
	CHECK(base64url_decode(
		SPAN_LIT("QOBgCPBSWuja0IY5s2ovHY8MhvlfKBa2qhHZCScN07aVX-lNybwMoVl9Mzf0"
			 "inFpM29APG0e-bSdDKskkxVOIA"),
		&signature));
	CHECK_EQ_INT(x.len, 31);
	CHECK_ERR(public_key_p256(buf_span(&x), buf_span(&y), &key), ERR_OK);
	CHECK_ERR(public_key_verify(key, SPAN_LIT("text"), buf_span(&signature)), ERR_OK);
	public_key_free(key);
	buf_clear(&x);
	CHECK_ERR(public_key_p256(buf_span(&x), buf_span(&y), &key), ERR_INVALID_INPUT);
	buf_add_span(&x, buf_span(&y));
	buf_add_char(&x, 0);
	CHECK_ERR(public_key_p256(buf_span(&x), buf_span(&y), &key), ERR_INVALID_INPUT);
	buf_fini(&x);
	buf_fini(&y);
	buf_fini(&signature);
}

TEST(files_without_usable_keys_are_refused_with_the_reason)
{
	static const char *const rows[][2] = {
		{ "", "no JSON object" },
		{ "[]", "no JSON object" },
		{ "{\"keys\":[],\"keys\":[]}", "stands twice" },
		{ "{}", "no key" },
		{ "{\"keys\":[{\"kty\":\"oct\",\"k\":\"c2VjcmV0\"}]}", "no key" },
		{ "{\"keys\":[{\"kty\":\"RSA\",\"alg\":\"RS512\"}]}", "no key" },
		{ "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-384\"}]}", "no key" },
		{ "{\"keys\":[7]}", "key 1 is no object" },
		{ "{\"keys\":[{\"kty\":\"RSA\"}]}", "key 1 is damaged" },
		{ "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}",
			"key 1 is damaged" },
		{ "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AQ\",\"y\":\"AQ\"}]}",
			"key 1 is damaged" },
		/* no point of the curve */
		{ "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\","
		  "\"x\":\"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE\","
		  "\"y\":\"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE\"}]}",
			"key 1 is damaged" },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct oauth *o = NULL;
		struct err_detail why = { 0 };
		write_file(rows[i][0]);
		CHECK_ERR(oauth_open(how, &o, &why), ERR_INVALID_INPUT);
		if (strstr(why.text, rows[i][1]) == NULL || strstr(why.text, path) == NULL)
			CHECK_EQ_STR(why.text, rows[i][1]);
	}
	static const char *const options[] = { "", "Basic", "basic:", "jwks", "jwks:", "jwk:/x" };
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		CHECK_ERR(
			oauth_open(options[i], &(struct oauth *){ NULL }, NULL), ERR_INVALID_INPUT);
	CHECK_ERR(oauth_open("jwks:/nowhere/x", &(struct oauth *){ NULL }, NULL), ERR_NOT_FOUND);
}

TEST(assignments_that_could_not_work_are_refused)
{
	static const char *const rows[][2] = {
		{ "7", "'assignments' is no array" },
		{ "\"oid\"", "'assignments' is no array" },
		{ "[7]", "assignment 1 is no object" },
		{ "[{}]", "needs a 'role' and a claim" },
		{ "[{\"role\":\"Storage Table Data Reader\"}]", "needs a 'role' and a claim" },
		{ "[{\"oid\":\"a\"}]", "needs a 'role' and a claim" },
		{ "[{\"oid\":\"a\",\"tid\":\"b\"}]", "needs a 'role' and a claim" },
		{ "[{\"oid\":\"a\",\"role\":\"Storage Table Data Raeder\"}]", "does not know" },
		{ "[{\"oid\":\"a\",\"role\":[\"Storage Table Data Reader\",7]}]", "does not know" },
		{ "[{\"oid\":[\"a\"],\"role\":\"Storage Table Data Reader\"}]", "is no text" },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct oauth *o = NULL;
		struct err_detail why = { 0 };
		char member[200];
		snprintf(member, sizeof(member), "\"assignments\":%s,", rows[i][0]);
		write_keys(member);
		CHECK_ERR(oauth_open(how, &o, &why), ERR_INVALID_INPUT);
		if (strstr(why.text, rows[i][1]) == NULL)
			CHECK_EQ_STR(why.text, rows[i][1]);
	}
}

TEST(a_file_has_at_most_1000_assignments)
{
	for (size_t n = ASSIGNMENTS_MAX; n <= ASSIGNMENTS_MAX + 1; n++) {
		struct buf text = BUF_INIT(1 << 20);
		struct oauth *o = NULL;
		buf_add_str(&text, "\"assignments\":[");
		for (size_t i = 0; i < n; i++)
			buf_addf(&text, "%s{\"oid\":\"%zu\",\"role\":\"Storage Blob Delegator\"}",
				i > 0 ? "," : "", i);
		buf_add_str(&text, "],");
		write_keys(text.data);
		CHECK_ERR(oauth_open(how, &o, NULL),
			n == ASSIGNMENTS_MAX ? ERR_OK : ERR_INVALID_INPUT);
		oauth_close(o);
		buf_fini(&text);
	}
}

TEST(a_file_has_at_most_100_keys)
{
	for (size_t n = JWK_SET_KEYS; n <= JWK_SET_KEYS + 1; n++) {
		struct buf text = BUF_INIT(1 << 20);
		struct jwk_set *s = NULL;
		buf_add_str(&text, "{\"keys\":[");
		for (size_t i = 0; i < n; i++) {
			char kid[20];
			snprintf(kid, sizeof(kid), "k%zu", i);
			buf_add_str(&text, i > 0 ? "," : "");
			jwt_add_key(curve, kid, "", &text);
		}
		buf_add_str(&text, "]}");
		CHECK_ERR(jwk_set_read(buf_span(&text), &s, NULL),
			n == JWK_SET_KEYS ? ERR_OK : ERR_INVALID_INPUT);
		jwk_set_free(s);
		buf_fini(&text);
	}
}

TEST(the_issuer_of_the_file_goes_before_that_of_a_key)
{
	static const char *const rows[][2] = { { "", "" },
		{ "\"issuer\":\"https://other/\",", "Issuer" },
		{ "\"issuer\":\"https://sts.windows.net/x/\",", "" } };
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		struct buf text = BUF_INIT(1 << 20);
		bool wrong = i >= ARRAY_LEN(rows);
		const char *const *row = rows[i % ARRAY_LEN(rows)];
		buf_addf(&text, "{%s\"keys\":[", row[0]);
		jwt_add_key(rsa, "r1",
			wrong ? ",\"issuer\":\"https://third/\""
			      : ",\"issuer\":\"https://sts.windows.net/x/\"",
			&text);
		buf_add_str(&text, "]}");
		write_file(text.data);
		struct oauth *o = open_oauth(how);
		(void)judge(o, rsa, RS256, GOOD, wrong && row[0][0] == '\0' ? "Issuer" : row[1]);
		oauth_close(o);
		buf_fini(&text);
	}
}

TEST(two_keys_of_one_kid_are_refused)
{
	struct buf text = BUF_INIT(1 << 20);
	struct jwk_set *s = NULL;
	struct err_detail why = { 0 };
	buf_add_str(&text, "{\"keys\":[");
	jwt_add_key(rsa, "a", "", &text);
	buf_add_str(&text, ",");
	jwt_add_key(curve, "a", "", &text);
	buf_add_str(&text, "]}");
	CHECK_ERR(jwk_set_read(buf_span(&text), &s, &why), ERR_INVALID_INPUT);
	CHECK_EQ_STR(why.text, "key 2 has the kid of an earlier one");
	buf_fini(&text);
}

TEST(the_file_is_read_again_when_it_changes)
{
	struct buf text = BUF_INIT(1 << 20);
	write_keys("");
	struct oauth *o = open_oauth(how);
	(void)judge(o, rsa2, RS256, GOOD, "Signature verification failed");
	buf_add_str(&text, "{ \"keys\":[");
	jwt_add_key(rsa2, "r1", "", &text);
	buf_add_str(&text, "]}");
	write_file(text.data);
	(void)judge(o, rsa2, RS256, GOOD, "");
	(void)judge(o, rsa, RS256, GOOD, "Signature verification failed");
	write_file("damaged");
	(void)judge(o, rsa2, RS256, GOOD, "");
	CHECK(unlink(path) == 0);
	(void)judge(o, rsa2, RS256, GOOD, "");
	write_keys("");
	(void)judge(o, rsa, RS256, GOOD, "");
	oauth_close(o);
	buf_fini(&text);
}

TEST(RSA_keys_have_2048_to_8192_bits)
{
	static const struct {
		size_t bytes;
		unsigned char first;
		enum err wanted;
	} rows[] = { { 256, 0x80, ERR_OK }, { 256, 0x7f, ERR_INVALID_INPUT },
		{ 1024, 0xff, ERR_OK }, { 1025, 0x01, ERR_INVALID_INPUT } };
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		unsigned char n[1025];
		struct public_key *k = NULL;
		memset(n, 0x55, sizeof(n));
		n[0] = rows[i].first;
		CHECK_ERR(public_key_rsa(span_make(n, rows[i].bytes), SPAN_LIT("\x01\x00\x01"), &k),
			rows[i].wanted);
		public_key_free(k);
		k = NULL;
		CHECK_ERR(public_key_rsa(span_make(n, rows[i].bytes), SPAN_LIT("\x01"), &k),
			ERR_INVALID_INPUT);
	}
}

int main(void)
{
	static const struct check_test tests[] = { T(a_set_of_one_key_needs_no_kid),
		T(a_coordinate_may_lack_its_zeros_in_front),
		T(files_without_usable_keys_are_refused_with_the_reason),
		T(assignments_that_could_not_work_are_refused),
		T(a_file_has_at_most_1000_assignments), T(a_file_has_at_most_100_keys),
		T(the_issuer_of_the_file_goes_before_that_of_a_key),
		T(two_keys_of_one_kid_are_refused), T(the_file_is_read_again_when_it_changes),
		T(RSA_keys_have_2048_to_8192_bits) };
	return run_with_keys(tests, ARRAY_LEN(tests));
}
